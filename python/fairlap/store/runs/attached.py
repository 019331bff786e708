"""Files that a user attached to a stored run: copies beside the store, for as long as the run is in it.

They stay on this machine: files of a run, bundles and shared stores are without them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest, reason_of
from fairlap.machine.files.private_files import make_private_folder, tighten
from fairlap.machine.files.regular_file import require_regular
from fairlap.store.errors import StoreError

_NEW = ".new"


class AttachedFile(msgspec.Struct, frozen=True):
    name: str
    bytes: int
    sha256: str


def attached_folder(store: Path, run: str) -> Path:
    return store.with_name(f"{store.name}.{run}.attached")


def attached_names(folder: Path) -> list[str]:
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {reason_of(error)}") from None
    return [path.name for path in paths if path.is_file() and not path.name.endswith(_NEW)]


def attached_files(folder: Path) -> list[AttachedFile]:
    """List them by their names."""
    found = []
    try:
        for path in (folder / name for name in attached_names(folder)):
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            found.append(AttachedFile(path.name, path.stat().st_size, digest))
    except OSError as error:
        raise StoreError(f"{error.filename or folder} cannot be read: {reason_of(error)}") from None
    return found


def attach(folder: Path, files: Sequence[Path]) -> None:
    """Copy files to the run; one of a name that it has takes the other's place. All are read before any is written."""
    names = [each.name for each in files]
    for path, name in zip(files, names, strict=True):
        if not path.is_file():
            raise InvalidRequest(f"{path} cannot be attached: there is no such file")
        if not name.isprintable() or name.startswith(".") or name.endswith(_NEW):
            raise InvalidRequest(f"{path} cannot be attached: name a file with a plain name")
        if names.count(name) > 1:
            raise InvalidRequest(f"two of the files are called {name}; rename one")
    try:
        make_private_folder(folder)
        for path in files:
            require_regular(path)
            copy = folder / f"{path.name}{_NEW}"
            shutil.copyfile(path, copy)
            tighten(copy)
            copy.replace(folder / path.name)
    except OSError as error:
        raise StoreError(f"{error.filename or folder} cannot be attached: {reason_of(error)}") from None


def detach(folder: Path, names: Iterable[str]) -> None:
    """Remove copies by their names."""
    has = attached_names(folder)
    for name in names:
        _require_known(name, has)
        (folder / name).unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def save_attached(folder: Path, into: Path) -> list[Path]:
    """Copy them into a folder, in which no file of such a name may be."""
    names = attached_names(folder)
    if there := [name for name in names if os.path.lexists(into / name)]:
        raise InvalidRequest(f"{into / there[0]} is there already; name another folder")
    try:
        into.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copyfile(folder / name, into / name)) for name in names]
    except OSError as error:
        raise InvalidRequest(f"{error.filename or into} cannot be written: {reason_of(error)}") from None


def _require_known(name: str, has: Sequence[str]) -> None:
    if name not in has:
        raise InvalidRequest(f"no file {name!r} is attached; there is {', '.join(has) or 'none'}")

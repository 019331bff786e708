"""fairlap itself, for a Python that its native module here is not for.

From the source that it runs or was installed from, built once, or else as pip finds its release.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, version
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fairlap.launch.packages.built_wheels import wheel_of
from fairlap.launch.packages.interpreters import Interpreter
from fairlap.launch.packages.source_trees import NotBuilt
from fairlap.machine.files.folder_hash import code_files

PARTS = ("CMakeLists.txt", "LICENSE", "README.md", "bench_models", "cmake", "cpp", "pyproject.toml", "python")
"""What a wheel is built from; a checkout has large builds and environments besides."""

_BUILT_ENDS = (".so", ".pyd", ".dylib")  # for the Python of this process
_PACKAGE = "python/fairlap"


def own_content() -> str:
    """Name what an environment with it depends on: the files of its source, or its release."""
    source = own_source()
    return release() if source is None else f"fairlap {tree_of(source)}"


def release() -> str:
    return f"fairlap=={version('fairlap')}"


def own_wheel(source: Path, python: Path, interpreter: Interpreter, folder: Path) -> Path:
    """Find its wheel in the folder, built with the pip of ``python`` if it is not there."""
    tree = tree_of(source)

    def fetch(into: Path) -> None:
        copy_parts(source, into)

    named = f"fairlap for Python {interpreter.name} from {source}"
    return wheel_of(f"fairlap {tree}", named, fetch, (), python, interpreter, folder)


def own_source() -> Path | None:
    """Find the checkout that this process runs from, or else the folder that it was installed from."""
    here = _package_folder()
    checkout = here.parents[1]
    if here == checkout / _PACKAGE and _has_all_parts(checkout):
        return checkout
    installed_from = _installed_from()
    if installed_from is None or not _has_all_parts(installed_from):
        return None
    _require_unchanged(here, installed_from)
    return installed_from


@cache
def tree_of(source: Path) -> str:
    """SHA-256 of the files of its parts."""
    found = hashlib.sha256()
    for path in _files(source):
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        found.update(b"%b\0%b" % (os.fsencode(path.relative_to(source)), hashlib.sha256(content).digest()))
    return found.hexdigest()


def copy_parts(source: Path, into: Path) -> None:
    for path in _files(source):
        copy = into / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy, follow_symlinks=False)


def _files(source: Path) -> list[Path]:
    parts = [source / part for part in PARTS]
    every = [file for part in parts for file in ([part] if part.is_file() else code_files(part))]
    return [each for each in every if not each.name.endswith(_BUILT_ENDS)]


def _has_all_parts(folder: Path) -> bool:
    return all((folder / part).exists() for part in PARTS)


def _package_folder() -> Path:
    return Path(__file__).resolve().parents[2]


def _installed_from() -> Path | None:
    """By the record that pip leaves of an installation from a folder (PEP 610)."""
    try:
        record = json.loads(Distribution.from_name("fairlap").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    if "dir_info" not in record:
        return None
    folder = Path(unquote(urlsplit(record["url"]).path))
    return folder if folder.is_dir() else None


def _require_unchanged(package: Path, source: Path) -> None:
    """Both sides of a race run the same code, so a source that has changed since is refused."""
    original = source / _PACKAGE
    for file in package.rglob("*.py"):
        own = original / file.relative_to(package)
        if not own.is_file() or own.read_bytes() != file.read_bytes():
            raise NotBuilt(
                f"fairlap's source in {source} has changed since it was installed here; install it again, "
                f"`pip install {source}`"
            )

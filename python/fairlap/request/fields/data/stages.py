"""The code around a user's model: the files of a folder, and the functions before and after the model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fairlap import quantity_text
from fairlap.errors import InvalidRequest, reason_of
from fairlap.request.fields.source import is_callable_name

CODE = "E_ITEMS"
MOST_ITEMS = 16  # each has its own float64 reference
MODEL = "model"
_SHOWN_DIGITS = 8


class Stages(msgspec.Struct, frozen=True):
    """Equal functions on equal files are the same work."""

    items: str  # the absolute path of the folder
    names: tuple[str, ...]  # of the files in it that are raced
    before: tuple[str, ...]  # module:function, each on what the one before returned, the first on the path of a file
    after: tuple[str, ...] = ()  # the first on the model's outputs
    folder: str = ""  # where modules are found first
    sha256: str = ""  # of the files' names and contents

    @property
    def identity(self) -> Stages:
        """The functions and the files' contents, wherever they are."""
        return msgspec.structs.replace(self, items="", folder="")

    @property
    def functions(self) -> tuple[str, ...]:
        return (*self.before, *self.after)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of all stages in their order, the model's among them."""
        short = [text.rpartition(":")[2] for text in self.functions]
        once = [MODEL, *short]
        own = [name if once.count(name) == 1 else text for name, text in zip(short, self.functions, strict=True)]
        return (*own[: len(self.before)], MODEL, *own[len(self.before) :])

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(Path(self.items) / name for name in self.names)

    @property
    def text(self) -> str:
        """With the beginning of the hash, since a folder of that name may have other files."""
        files = quantity_text.count(len(self.names), "file")
        return f"{files} of {Path(self.items).name} ({self.sha256[:_SHOWN_DIGITS]})"


def stages_of(items: str, before: Sequence[str], after: Sequence[str]) -> Stages:
    """Choose the files of the folder, and hash them. Raises InvalidRequest for what cannot be raced."""
    require_functions("before", before)
    require_functions("after", after)
    folder = Path(items).absolute()
    names = _spread(_names_in(folder, items))
    found = Stages(str(folder), names, tuple(before), tuple(after), str(Path.cwd()))
    return msgspec.structs.replace(found, sha256=hash_of_files(found))


def require_functions(option: str, names: Sequence[str]) -> None:
    for text in names:
        if not is_callable_name(text):
            raise InvalidRequest(f"--{option} {text} is not module:function, such as mypkg.photos:decode", code=CODE)
    if again := [text for text in names if list(names).count(text) > 1]:
        raise InvalidRequest(f"--{option} names {again[0]} twice", code=CODE)


def hash_of_files(stages: Stages) -> str:
    digest = hashlib.sha256()
    for name, file in zip(stages.names, stages.files, strict=True):
        try:
            with file.open("rb") as opened:
                content = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise InvalidRequest(f"--items: {file} cannot be read: {reason_of(error)}", code=CODE) from None
        digest.update(f"{content} {name}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _names_in(folder: Path, text: str) -> list[str]:
    """List regular files, sorted; hidden ones, such as those of a desktop, are left out."""
    try:
        names = sorted(each.name for each in folder.iterdir() if each.is_file() and not each.name.startswith("."))
    except OSError as error:
        raise InvalidRequest(f"--items {text} is not a folder of files: {reason_of(error)}", code=CODE) from None
    if odd := [name for name in names if not name.isprintable()]:
        raise InvalidRequest(
            f"--items {text}: the name {odd[0]!a} cannot be shown; give the file another one", code=CODE
        )
    if not names:
        raise InvalidRequest(f"--items {text} has no files; name a folder with a file for each item", code=CODE)
    return names


def _spread(names: Sequence[str]) -> tuple[str, ...]:
    """Take all of them, or as many as are raced, spread evenly."""
    count = min(len(names), MOST_ITEMS)
    return tuple(names[place * len(names) // count] for place in range(count))

"""The sizes of calls that change from call to call: of a CSV file with a row for each call, or drawn."""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

import msgspec

from fairlap import quantity_text
from fairlap.errors import InvalidRequest, reason_of
from fairlap.request.fields.sizes.drawn_sizes import drawn_sizes, is_drawn

CODE = "E_SHAPES"
MOST_SIZES = 32  # distinct ones: each is proven, bound to inputs, and compiled for
MOST_CALLS = 1_000_000
_MOST_BYTES = 2**26
_MOST_SIZE = 2**31

Size = tuple[int, ...]


class Mix(msgspec.Struct, frozen=True):
    """The distinct sizes, ascending, and how many calls have each. Their order in the file says nothing."""

    names: tuple[str, ...]  # of the dimensions
    sizes: tuple[Size, ...]  # each in the order of the names
    calls: tuple[int, ...]
    file: str = ""  # its absolute path, or the distribution that they were drawn from

    @property
    def identity(self) -> Mix:
        """The sizes, wherever they came from."""
        return msgspec.structs.replace(self, file="")

    @property
    def text(self) -> str:
        return f"{quantity_text.count(len(self.sizes), 'size')} of {', '.join(self.names)}"

    @property
    def total(self) -> int:
        return sum(self.calls)

    @property
    def usual(self) -> int:
        """The place of the size that most calls have; of several the largest."""
        return max(range(len(self.sizes)), key=lambda place: (self.calls[place], self.sizes[place]))

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple(count / self.total for count in self.calls)

    def dims(self, place: int) -> tuple[tuple[str, int], ...]:
        """As ``--dims`` gives them."""
        return tuple(zip(self.names, self.sizes[place], strict=True))

    def label(self, place: int) -> str:
        """``batch=4,sequence=37``; of a single dimension ``37``."""
        if len(self.names) == 1:
            return str(self.sizes[place][0])
        return ",".join(f"{name}={size}" for name, size in self.dims(place))


def mix_in(file: str, seed: int = 0) -> Mix:
    """Read a CSV file whose header names dimensions, or draw from a distribution with the ``seed``.

    Raises InvalidRequest for anything else, with the line.
    """
    path = Path(file)
    if is_drawn(file) and not os.path.exists(file):  # noqa: PTH110  (a Path raises where the text is too long)
        name, drawn = drawn_sizes(file, seed)
        return _mix((name,), Counter({(size,): count for size, count in drawn.items()}), file)
    try:
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise InvalidRequest(f"--shapes-from {file} is larger than {_MOST_BYTES // 2**20} MiB", code=CODE)
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = "it is not valid UTF-8" if isinstance(error, UnicodeDecodeError) else reason_of(error)
        raise InvalidRequest(f"--shapes-from {file} cannot be read: {why}", code=CODE) from None
    try:
        lines = [
            (number, row) for number, row in enumerate(csv.reader(text.splitlines()), 1) if any(map(str.strip, row))
        ]
    except csv.Error as error:
        raise InvalidRequest(f"--shapes-from {file} is not a CSV file: {error}", code=CODE) from None
    if len(lines) < 2:
        raise InvalidRequest(
            f"--shapes-from {file} has no calls; write names of dimensions, such as sequence, and a row for each call",
            code=CODE,
        )
    names = _names(file, lines[0][1])
    counts = Counter(_size(file, names, number, row) for number, row in lines[1:])
    if len(counts) > MOST_SIZES:
        raise InvalidRequest(
            f"--shapes-from {file} has {len(counts)} distinct sizes; each is proven and compiled for, so at most "
            f"{MOST_SIZES} are raced: round some of them up, or take a sample",
            code=CODE,
        )
    if len(lines) - 1 > MOST_CALLS:
        raise InvalidRequest(f"--shapes-from {file} has more than {MOST_CALLS:,} calls", code=CODE)
    return _mix(names, counts, str(path.absolute()))


def _mix(names: tuple[str, ...], counts: Counter[Size], file: str) -> Mix:
    sizes = tuple(sorted(counts))
    return Mix(names, sizes, tuple(counts[size] for size in sizes), file)


def _names(file: str, header: list[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in header)
    if not all(names) or len(set(names)) < len(names) or any(name.isdecimal() for name in names):
        raise InvalidRequest(
            f"--shapes-from {file}: its first line must name dimensions, each once, such as batch,sequence "
            f"(got {','.join(names)})",
            code=CODE,
        )
    return names


def _size(file: str, names: tuple[str, ...], number: int, row: list[str]) -> Size:
    where = f"--shapes-from {file}, line {number}"
    if len(row) != len(names):
        raise InvalidRequest(f"{where}: {len(row)} values for the columns {','.join(names)}", code=CODE)
    found = []
    for name, text in zip(names, (each.strip() for each in row), strict=True):
        size = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_SIZE)) else 0
        if not 1 <= size < _MOST_SIZE:
            raise InvalidRequest(
                f"{where}: {name} must be a whole number from 1 to {_MOST_SIZE - 1} (got {text})", code=CODE
            )
        found.append(size)
    return tuple(found)

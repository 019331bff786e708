"""Criteo's click logs as they are published: a label, 13 counts and 26 hashed categories a line, with tabs, no header.

Counts become the logarithm of one more, and missing or negative ones 0, as in DLRM's own preparation. Each category
becomes four rows of a table, which follow from its hash and are always the same ones, like the bags that MLPerf makes
of them; a missing one is row 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairlap.bench_models.dlrm.spec import BAG, FEATURES, NUMBERS, ROWS
from fairlap.data.labelled.items import CODE, Items, items_with_values
from fairlap.errors import InvalidRequest
from fairlap.models.array_files.stored_rows import StoredRows

_CELLS = 1 + NUMBERS + FEATURES
_DIGITS = 8  # of a hash, hexadecimal
_LINES_AT_ONCE = 50_000
_LONGEST_LINE = 4096
_SPREAD = np.array([1, 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D][:BAG], np.uint64)  # odd, from xxHash
_TWO_TO_32 = np.uint64(2**32)
_NINE, _LETTERS = ord("9"), ord("a") - ord("9") - 1

Cells = npt.NDArray[np.str_]


def is_criteo(path: Path) -> bool:
    """Whether the first line of a file is one of a log, whatever its name is."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        cells = file.readline(_LONGEST_LINE).rstrip(b"\r\n").split(b"\t")
    hashes = [cell for cell in cells[1 + NUMBERS :] if cell]
    return (
        len(cells) == _CELLS
        and cells[0] in (b"0", b"1")
        and all(len(cell) == _DIGITS and set(cell) <= set(b"0123456789abcdef") for cell in hashes)
    )


def criteo_items(path: Path) -> Items:
    numbers, rows, labels = StoredRows(), StoredRows(), StoredRows()
    for first, cells in _parts(path):
        numbers.add(_counts(path, first, cells[:, 1 : 1 + NUMBERS]))
        rows.add(_rows(path, first, cells[:, 1 + NUMBERS :]))
        labels.add(_labels(path, first, cells[:, 0]))
    return items_with_values({"numbers": numbers.array(), "rows": rows.array()}, labels.array(), path)


def _parts(path: Path) -> Iterator[tuple[int, Cells]]:
    """Yield the number of the first line, and the cells of some lines."""
    try:
        with path.open(encoding="ascii") as file:
            first = 1
            while lines := list(islice(file, _LINES_AT_ONCE)):
                cells = [line.rstrip("\r\n").split("\t") for line in lines]
                for place, row in enumerate(cells):
                    if len(row) != _CELLS:
                        raise _wrong(path, first + place, f"it has {len(row)} cells, not {_CELLS}")
                yield first, np.array(cells)
                first += len(lines)
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not a log of Criteo: it has letters outside of ASCII", code=CODE) from None


def _labels(path: Path, first: int, cells: Cells) -> npt.NDArray[np.float64]:
    if (wrong := ~np.isin(cells, ("0", "1"))).any():
        raise _wrong(path, first + int(wrong.argmax()), f"its label is {str(cells[wrong][0])[:20]!r}, not 0 or 1")
    return cells.astype(np.float64)


def _counts(path: Path, first: int, cells: Cells) -> npt.NDArray[np.float64]:
    try:
        counts = np.where(cells == "", "0", cells).astype(np.int64)
    except (ValueError, OverflowError):
        line = next(place for place, row in enumerate(cells) if not all(map(_is_count, row)))
        raise _wrong(path, first + line, "one of its 13 counts is not a whole number") from None
    return np.log1p(np.maximum(counts, 0).astype(np.float64))


def _is_count(cell: str) -> bool:
    return cell.removeprefix("-").isdecimal() or not cell


def _rows(path: Path, first: int, cells: Cells) -> npt.NDArray[np.int32]:
    filled = np.where(cells == "", "0" * _DIGITS, cells)
    wrong = np.char.str_len(filled) != _DIGITS
    codes = filled.astype(f"U{_DIGITS}").view(np.uint32).reshape(*cells.shape, _DIGITS).astype(np.int64)
    digits = codes - ord("0") - np.where(codes > _NINE, _LETTERS, 0)
    wrong |= ((digits < 0) | (digits > 15) | ((codes > _NINE) & (digits < 10))).any(axis=2)
    if wrong.any():
        line, column = (int(each[0]) for each in np.nonzero(wrong))
        raise _wrong(path, first + line, f"{str(cells[line, column])[:20]!r} is not a hash of eight digits")
    hashes = (digits @ (16 ** np.arange(_DIGITS)[::-1])).astype(np.uint64)
    return (hashes[..., None] * _SPREAD % _TWO_TO_32 % np.uint64(ROWS)).astype(np.int32)


def _wrong(path: Path, line: int, why: str) -> InvalidRequest:
    return InvalidRequest(f"{path}, line {line}: {why}, as in Criteo's logs", code=CODE)

"""The tables of Open Images: boxes, the classes that were verified in each image, and the hierarchy of classes.

A row is the left, top, width and height of a box, as shares of the photo, the number of its class, and its kind.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from fairlap.models.metrics.boxes import BOX, GROUP, VERIFIED
from fairlap.models.published_data.published_images import refuse

_COLUMNS = ("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax", "IsGroupOf")
_VERIFIED_COLUMNS = {"ImageID", "LabelName", "Confidence"}
_ENDS = ("-annotations-bbox", "-annotations-human-bbox", "-bbox")  # of the names of files of boxes
_VERIFIED_ENDS = ("-annotations-human-imagelabels-boxable", "-annotations-human-imagelabels", "-human-imagelabels")
_CLASSES = ("class-descriptions-boxable.csv", "oidv7-class-descriptions-boxable.csv")
_HIERARCHIES = (
    "bbox_labels_600_hierarchy.json",
    "bbox_labels_500_hierarchy.json",
    "challenge-2018-label500-hierarchy.json",
    "challenge-2019-label500-hierarchy.json",
)
_FIRST_BYTES = 4096
_MOST_DEPTH = 50

Row = tuple[float, ...]
Rows = dict[str, list[Row]]  # by the names of images


class _Node(msgspec.Struct, rename="pascal"):
    """A class with those that are kinds of it. Its parts are no kinds of it, and are skipped."""

    label_name: str
    subcategory: list[_Node] = []


def has_open_images(path: Path) -> bool:
    """Whether the first line of a table is that of boxes."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return set(_COLUMNS) <= set(file.readline(_FIRST_BYTES).strip().split(","))


class OpenImages:
    """One part of the data set, by its file of boxes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = next((path.stem.removesuffix(end) for end in _ENDS if path.stem.endswith(end)), "")

    @property
    def part(self) -> str:
        """Its name, which the folder of its photos has."""
        return self.start.rpartition("-")[2]

    def files(self, *, verified: bool) -> list[Path]:
        """Name those that are read besides the boxes and the photos."""
        return [self.classes, *([self.hierarchy, self.verified] if verified else [])]

    @cached_property
    def classes(self) -> Path:
        if (found := self._near(*_CLASSES)) is None:
            raise refuse(self.path, f"its classes are numbered by {_CLASSES[0]}; put that file beside it")
        return found

    @cached_property
    def hierarchy(self) -> Path:
        if (found := self._near(*_HIERARCHIES)) is None:
            raise refuse(self.path, f"oi_map takes the hierarchy of its classes, {_HIERARCHIES[0]}; put it beside it")
        return found

    @cached_property
    def verified(self) -> Path:
        names = [f"{self.start}{end}.csv" for end in _VERIFIED_ENDS]
        if (found := self._near(*names)) is None:
            raise refuse(self.path, f"oi_map takes what was verified in its images, {names[0]}; put that beside it")
        return found

    def boxes(self) -> Rows:
        found: Rows = {}
        for line, row in _rows(self.path, set(_COLUMNS)):
            if row["LabelName"] not in self._numbers:
                raise refuse(self.path, f"line {line}: the class {row['LabelName']!r:.40} is not in {self.classes}")
            left, right, top, bottom = (_share(self.path, line, row[name]) for name in ("XMin", "XMax", "YMin", "YMax"))
            if right < left or bottom < top:
                raise refuse(self.path, f"line {line}: the box ends before it begins")
            kind = GROUP if row["IsGroupOf"] == "1" else BOX
            box = (left, top, right - left, bottom - top, self._numbers[row["LabelName"]], kind)
            found.setdefault(row["ImageID"], []).append(box)
        if not found:
            raise refuse(self.path, "it has no boxes")
        return found

    def boxes_and_verified(self) -> Rows:
        """Give each box to all classes that its own is a kind of, and add a row for each class that was verified.

        What is present is of these classes too; what is absent is absent in all of its kinds.
        """
        above, below = self._above_and_below
        found = {
            image: [(*row[:4], each, row[5]) for row in rows for each in (row[4], *sorted(above.get(int(row[4]), ())))]
            for image, rows in self.boxes().items()
        }
        known: dict[str, set[int]] = {}
        for line, row in _rows(self.verified, _VERIFIED_COLUMNS):
            if row["Confidence"] not in ("0", "1"):
                raise refuse(self.verified, f"line {line}: {row['Confidence']!r:.40} is not 0 or 1, absent or present")
            number = self._numbers.get(row["LabelName"])
            if number is None:  # of the classes that have no boxes
                continue
            others = above if row["Confidence"] == "1" else below
            known.setdefault(row["ImageID"], set()).update((number, *others.get(number, ())))
        for image, numbers in known.items():
            found.setdefault(image, []).extend((0.0, 0.0, 0.0, 0.0, each, VERIFIED) for each in sorted(numbers))
        return found

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        with self.classes.open(encoding="utf-8-sig", newline="") as file:
            names = [row[0] for row in csv.reader(file) if row]
        return {name: number for number, name in enumerate(names[1:] if names[:1] == ["LabelName"] else names)}

    @cached_property
    def _above_and_below(self) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
        """Of each class, those that it is a kind of, and those that are kinds of it; the root is none."""
        try:
            root = msgspec.json.decode(self.hierarchy.read_bytes(), type=_Node)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise refuse(self.hierarchy, f"it is not a hierarchy of classes: {error}") from None
        above: dict[int, set[int]] = {}
        below: dict[int, set[int]] = {}
        for number, over in _with_those_above(root.subcategory, (), self._numbers):
            for each in over:
                above.setdefault(number, set()).add(each)
                below.setdefault(each, set()).add(number)
        return above, below

    def _near(self, *names: str) -> Path | None:
        """Look for names, since a process in a sandbox lists no folder."""
        files = (folder / name for folder in (self.path.parent, self.path.parent.parent) for name in names)
        return next((file for file in files if file.is_file()), None)


def _with_those_above(
    nodes: list[_Node], over: tuple[int, ...], numbers: Mapping[str, int]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    for node in nodes if len(over) < _MOST_DEPTH else ():
        number = numbers.get(node.label_name)
        if number is not None:
            yield number, over
        within = over if number is None else (*over, number)
        yield from _with_those_above(node.subcategory, within, numbers)


def _rows(path: Path, columns: set[str]) -> Iterator[tuple[int, Mapping[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if lacking := columns - set(reader.fieldnames or ()):
                raise refuse(path, f"it has no column {min(lacking)}")
            for row in reader:
                if None in row or None in row.values():
                    raise refuse(path, f"line {reader.line_num} has another number of cells than the header")
                yield reader.line_num, row
    except (UnicodeDecodeError, csv.Error) as error:
        raise refuse(path, f"it cannot be read as CSV: {error}") from None


def _share(path: Path, line: int, cell: str) -> float:
    try:
        found = float(cell)
    except ValueError:
        found = np.nan
    if not 0 <= found <= 1:
        raise refuse(path, f"line {line}: {cell!r:.40} is not a share of a photo, from 0 to 1")
    return found

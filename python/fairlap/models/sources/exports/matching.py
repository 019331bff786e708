"""Which inputs and outputs of two files of one model stand for each other.

Names decide where both files have them. Exporters change names, so the others are taken in their order, which numbers
in their names may say, each by its shape and type. Of an image, one file may have the channels before height and width
and the other after them: such an array is turned before a call is timed, and turned back after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import SourceError
from fairlap.models.spec import Dtype
from fairlap.request.fields.source import Form

Sizes = tuple[int | None, ...]  # None where a file leaves a size open

_TURNS: Mapping[tuple[int, ...], str] = {(0, 2, 3, 1): "NCHW to NHWC", (0, 3, 1, 2): "NHWC to NCHW"}
_NUMBERED = re.compile(r"(?P<stem>.*?)(?:[_:.]?(?P<number>\d+))?")  # output_1, args_0, StatefulPartitionedCall:2
_KINDS = {"i": "integer", "u": "integer", "f": "float", "b": "bool"}


@dataclass(frozen=True)
class Place:
    """Where a tensor of the first file is in another one."""

    name: str
    dtype: Dtype
    turn: tuple[int, ...] = ()  # of the first file's axes; empty where both have the same order

    def into(self, array: np.ndarray) -> np.ndarray:
        """As the other file has it."""
        turned = array.transpose(self.turn) if self.turn else array
        converted = np.ascontiguousarray(turned.astype(self.dtype, copy=False))
        if converted.dtype.kind != "f" and not np.array_equal(converted, turned):
            raise SourceError(f"values do not fit into {self.name}, which is {self.dtype}", code="E_SOURCE_INPUTS")
        return converted

    def turned(self, array: np.ndarray) -> np.ndarray:
        """In the order of the other file's axes, and of the same type."""
        return np.ascontiguousarray(array.transpose(self.turn)) if self.turn else array

    def turned_back(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.transpose(np.argsort(self.turn))) if self.turn else array


@dataclass(frozen=True)
class Match:
    """Places by the names of the first file."""

    inputs: Mapping[str, Place]
    outputs: Mapping[str, Place]

    def given(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """As the other file takes them; floats stay in the precision that they have."""
        return {
            place.name: place.turned(inputs[name]) if inputs[name].dtype.kind == "f" else place.into(inputs[name])
            for name, place in self.inputs.items()
        }

    def returned(self, outputs: Arrays) -> dict[str, np.ndarray]:
        """Rename what the other file returned, and turn it to the first file's order of axes."""
        return {name: place.turned_back(np.asarray(outputs[place.name])) for name, place in self.outputs.items()}

    def expected(self, outputs: Arrays) -> dict[str, np.ndarray]:
        """Turn and rename what the other file should return."""
        return {place.name: place.turned(np.asarray(outputs[name])) for name, place in self.outputs.items()}

    @property
    def text(self) -> str:
        """Describe what differs between the files; empty where nothing does."""
        return "; ".join(filter(None, (_text("takes", self.inputs), _text("returns", self.outputs))))


def _text(verb: str, places: Mapping[str, Place]) -> str:
    found = []
    for name, place in places.items():
        renamed = f"{name} as {place.name}" if place.name != name else name
        turned = f" ({_TURNS[place.turn]})" if place.turn else ""
        if turned or place.name != name:
            found.append(f"{renamed}{turned}")
    return f"{verb} {', '.join(found)}" if found else ""


def places(
    what: str, first: Sequence[Form], other: Sequence[Form], first_file: str, other_file: str
) -> dict[str, Place]:
    """Find the place of each tensor of the first file in the other one. ``what`` are inputs or outputs."""
    if len(first) != len(other):
        raise SourceError(
            f"{other_file} has {len(other)} {what} ({_names(other)}), and {first_file} has {len(first)} "
            f"({_names(first)}), so they are no exports of one model"
        )
    found: dict[str, Place] = {}
    forms = {name: (sizes, dtype) for name, sizes, dtype in other}
    left = {name: forms[name] for name in _in_order(forms)}
    by_name = [each for each in first if each[0] in left]
    for name, sizes, dtype in by_name:
        turn = _turn(sizes, left[name][0])
        if turn is None or not _alike(dtype, left[name][1]):
            raise SourceError(
                f"{name} is {_form(sizes, dtype)} in {first_file} and {_form(*left[name])} in {other_file}"
            )
        found[name] = Place(name, _dtype(left.pop(name)[1]), turn)
    own = {name: (name, sizes, dtype) for name, sizes, dtype in first}
    waiting = [own[name] for name in _in_order(own) if name not in found]
    for exactly in (True, False):
        for name, sizes, dtype in [each for each in waiting if each[0] not in found]:
            for there, (sizes_there, dtype_there) in left.items():
                turn = _turn(sizes, sizes_there)
                same = turn == () and dtype == dtype_there
                if turn is not None and _alike(dtype, dtype_there) and (same or not exactly):
                    found[name] = Place(there, _dtype(dtype_there), turn)
                    del left[there]
                    break
    if missing := [each for each in waiting if each[0] not in found]:
        name, sizes, dtype = missing[0]
        others = ", ".join(f"{there} is {_form(*form)}" for there, form in left.items())
        raise SourceError(
            f"{other_file} has nothing for {name} of {first_file}, which is {_form(sizes, dtype)}: {others}"
        )
    return {name: found[name] for name, _, _ in first}


def _in_order(names: Iterable[str]) -> list[str]:
    """By the numbers in them, where they differ in nothing else: files list such names in any order."""
    listed = list(names)
    parts = [_NUMBERED.fullmatch(name.removesuffix(":0")) for name in listed]
    stems = {part["stem"] for part in parts if part}
    numbers = [int(part["number"] or 0) for part in parts if part]
    if len(stems) > 1 or len(set(numbers)) < len(listed):
        return listed
    return [name for _, name in sorted(zip(numbers, listed, strict=True))]


def shapes_like(declared: Mapping[str, Sizes], like: Iterable[Form]) -> dict[str, tuple[int, ...]]:
    """Find the sizes of a file's inputs, of which it leaves some open, from those of the first file."""
    found: dict[str, tuple[int, ...]] = {}
    given = {name: sizes for name, sizes, _ in like}
    for name in given.keys() & declared.keys():
        found[name] = _as_declared(given[name], declared[name]) or given[name]
    waiting = [given[name] for name in _in_order(given) if name not in declared]
    for name in _in_order(declared):
        for place, sizes in enumerate(waiting if name not in found else ()):
            if fitting := _as_declared(sizes, declared[name]):
                found[name] = fitting
                del waiting[place]
                break
    return found


def _as_declared(sizes: tuple[int, ...], own: Sizes) -> tuple[int, ...] | None:
    """Turn the sizes if they fit only then; None where they do not fit."""
    for turn in ((), *_TURNS):
        turned = tuple(sizes[axis] for axis in turn) if turn and len(sizes) == len(turn) else sizes
        if len(turned) == len(own) and all(size in (None, wanted) for size, wanted in zip(own, turned, strict=True)):
            return turned
    return None


def _turn(sizes: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """Find the order of axes that leads from one shape to the other; None where none that is known does."""
    if sizes == other:
        return ()
    fitting = (turn for turn in _TURNS if len(sizes) == len(turn) and tuple(sizes[axis] for axis in turn) == other)
    return next(fitting, None)


def _alike(dtype: str, other: str) -> bool:
    """Whether values of one can be held in the other: exporters narrow integers."""
    kinds = [_KINDS[np.dtype(each).kind] for each in (dtype, other)]
    return kinds[0] == kinds[1]


def _dtype(found: str) -> Dtype:
    return found  # type: ignore[return-value]


def _form(sizes: tuple[int, ...], dtype: str) -> str:
    return f"{'x'.join(map(str, sizes)) or 'one number'} of {dtype}"


def _names(forms: Sequence[Form]) -> str:
    return ", ".join(name for name, _, _ in forms)

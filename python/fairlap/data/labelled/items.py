"""All items of a data set as they are read, before any is held out or scaled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.errors import InvalidRequest
from fairlap.models.array_files.npy_map import pieces_of
from fairlap.models.arrays import Arrays, hash_of
from fairlap.request.fields.data.training_data import ItemSizes

Array = npt.NDArray[Any]

CODE = "E_DATA"
_FEWEST = 5  # so that one is held out


@dataclass(frozen=True)
class Items:
    inputs: Arrays  # a single one takes the name that the model has for it
    labels: Array  # int32 numbers of classes, one or several for an item, or float64 values in one column
    classes: tuple[str, ...] = ()  # their names, in the order of their numbers; none for values
    origin: str = ""
    licence: str = ""
    held_out: Array | None = None  # whether each item is; drawn where there is none

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def hash(self) -> str:
        names = np.frombuffer(json.dumps(self.classes).encode(), np.uint8)
        held = {} if self.held_out is None else {"held out": self.held_out}
        return hash_of({**self.inputs, "labels": self.labels, "names of classes": names, **held}, pieces_of)

    @property
    def sizes(self) -> ItemSizes:
        first = next(iter(self.inputs.values()))
        return ItemSizes(first.shape[1:], len(self.classes) or None)

    def named_for(self, names: Sequence[str]) -> Arrays:
        """Rename the inputs to the model's names."""
        if len(self.inputs) == len(names) == 1:
            return dict(zip(names, self.inputs.values(), strict=True))
        return self.inputs


def items_with_classes(inputs: Arrays, labels: Array, where: object, names: Sequence[str] = ()) -> Items:
    """Labels are texts or whole numbers, whose classes are sorted; or the numbers of the ``names``."""
    if names:
        return _checked(Items(inputs, labels.astype(np.int32), tuple(names), str(where)))
    found, numbers = np.unique(labels, return_inverse=True)
    numbers = numbers.reshape(-1).astype(np.int32)
    return _checked(Items(inputs, numbers, tuple(map(str, found)), str(where)))


def items_with_values(inputs: Arrays, labels: Array, where: object) -> Items:
    return _checked(Items(inputs, labels.astype(np.float64).reshape(-1, 1), origin=str(where)))


def fits_float32(array: Array) -> bool:
    """Whether its numbers are there, finite and not too large."""
    return bool((np.abs(array) <= np.finfo(np.float32).max).all())


def _checked(items: Items) -> Items:
    where = items.origin
    if len(items) < _FEWEST:
        found = "1 item" if len(items) == 1 else f"{len(items) or 'no'} items"
        raise InvalidRequest(f"{where} has {found}; at least {_FEWEST} are needed", code=CODE)
    if len(items.classes) == 1:
        raise InvalidRequest(f"{where} has one class only, {items.classes[0]!r}; there is nothing to learn", code=CODE)
    if not items.classes and np.ptp(items.labels) == 0:
        raise InvalidRequest(f"{where}: all labels are {items.labels[0, 0]:g}; there is nothing to learn", code=CODE)
    for name, array in {**items.inputs, "labels": items.labels}.items():
        if array.dtype.kind == "f" and not all(map(fits_float32, pieces_of(array))):
            raise InvalidRequest(
                f"{where}: {name} has numbers that are missing, not finite or too large for float32", code=CODE
            )
    return items

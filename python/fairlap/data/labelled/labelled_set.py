"""Items with their labels: some to learn from, and others that are held out to see what was learnt.

Tables and values are standardised by the mean and the deviation of the items that are learnt from alone, so that
nothing of the held-out ones is known before. Images stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.data.labelled.items import CODE, Items
from fairlap.errors import InvalidRequest
from fairlap.models.array_files.npy_map import pieces_of
from fairlap.models.array_files.stored_rows import Places, mean_and_deviation, picked_rows
from fairlap.models.arrays import Arrays, Labels, hash_of

HELD_OUT = 0.2  # of all items
_TABLE_AXES = 2

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LabelledSet:
    inputs: Arrays  # by the model's names, in its types
    labels: Labels
    held_inputs: Arrays
    held_labels: Labels
    classes: tuple[str, ...] = ()
    origin: str = ""  # where it is from
    licence: str = ""

    @cached_property
    def hash(self) -> str:
        held = {f"held {name}": array for name, array in self.held_inputs.items()}
        return hash_of({**self.inputs, **held, "labels": self.labels, "held labels": self.held_labels}, pieces_of)


def parted(items: Items, names: tuple[str, ...] = (), fraction: float = 1.0) -> LabelledSet:
    """Split the items so that the same ones are held out whichever fraction of the others is learnt from.

    ``names`` are those of the model's inputs.
    """
    held, learnt = _held_and_learnt(items)
    learnt = _drawn(items, learnt, fraction)
    _require_every_class(items, learnt)
    inputs = items.named_for(names) if names else items.inputs
    scaled = {name: _scaling(array, learnt) if _is_table(array) else _as_it_is for name, array in inputs.items()}
    scale_labels = _as_it_is if items.classes else _scaling(items.labels, learnt)
    return LabelledSet(
        {name: picked_rows(array, learnt, scaled[name]) for name, array in inputs.items()},
        picked_rows(items.labels, learnt, scale_labels),
        {name: picked_rows(array, held, scaled[name]) for name, array in inputs.items()},
        picked_rows(items.labels, held, scale_labels),
        items.classes,
        items.origin,
        items.licence,
    )


def _held_and_learnt(items: Items) -> tuple[Places, Places]:
    if items.held_out is not None:
        return np.flatnonzero(items.held_out), np.flatnonzero(~items.held_out)
    held, learnt = np.split(np.random.default_rng(0).permutation(len(items)), [round(HELD_OUT * len(items))])
    return held, learnt


def _is_table(array: Array) -> bool:
    return array.ndim == _TABLE_AXES and array.dtype.kind == "f"


def _has_one_class_each(items: Items) -> bool:
    return bool(items.classes) and items.labels.ndim == 1


def _drawn(items: Items, learnt: Places, fraction: float) -> Places:
    """So large a share of each class, and at least one of each. A larger fraction has the items of a smaller one."""
    if fraction == 1:
        return learnt
    shuffled = np.random.default_rng(0).permutation(len(learnt))
    classes = items.labels[learnt] if _has_one_class_each(items) else np.zeros(len(learnt), np.int32)
    kept = np.zeros(len(learnt), bool)
    for number in np.unique(classes):
        of_class = shuffled[classes[shuffled] == number]
        kept[of_class[: max(1, round(fraction * len(of_class)))]] = True
    return learnt[kept]


def _require_every_class(items: Items, learnt: Places) -> None:
    if not _has_one_class_each(items):
        return
    counts = np.bincount(items.labels[learnt], minlength=len(items.classes))
    if not counts.all():
        name = items.classes[int(np.argmin(counts))]
        raise InvalidRequest(
            f"{items.origin}: every item of the class {name!r} is held out; give more items of it, or leave it out",
            code=CODE,
        )


def _as_it_is(rows: Array) -> Array:
    return rows


def _scaling(array: Array, learnt: Places) -> Callable[[Array], Array]:
    """Standardize each column by the items learnt from; a column whose numbers are all the same becomes 0."""
    mean, deviation = mean_and_deviation(array, learnt)
    divisor = np.where(deviation > 0, deviation, 1.0)
    return lambda rows: ((rows - mean) / divisor).astype(np.float32)

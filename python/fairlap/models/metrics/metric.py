"""What a metric of a task is: how it takes outputs and labels apart, item by item, and makes its figure of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairlap.errors import InvalidRequest

Array = npt.NDArray[Any]
Parts = tuple[Array, ...]  # each with one row for each item

IGNORED = -100  # a label that does not count, as in PyTorch's cross-entropy
CODE = "E_METRIC"


@dataclass(frozen=True)
class Output:
    """An array that a metric scores, of one batch."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Package:
    """What a metric needs besides SciPy, and the extra of fairlap that brings it."""

    module: str
    name: str
    extra: str


SCIKIT_LEARN = Package("sklearn", "scikit-learn", "metrics")


@dataclass(frozen=True)
class TaskMetric:
    """``require_fit`` raises InvalidRequest for labels that do not fit the outputs; it is given the metric's text."""

    meaning: str
    require_fit: Callable[[str, Array, Sequence[Output]], None]
    parts: Callable[..., Parts]  # of the outputs that it scores, and then the labels
    value: Callable[..., float]  # of the parts of all items
    package: Package | None = None
    outputs: tuple[str, ...] = ()  # that it scores unless others are named; the first one where this is empty
    reads: Literal["", "coco", "open-images"] = ""  # whose file of boxes the labels are; else they are an array
    share: bool = False  # of right answers, so that its interval can be Wilson's
    best_is_1: bool = False
    better: Literal["higher", "lower"] = "higher"
    resamples: int = 999
    most_resampled: int | None = None  # numbers in the first part; with more, resampling takes too long

    def is_right_or_wrong(self, parts: Parts) -> bool:
        """Whether each item is one answer that is right or wrong."""
        return self.share and bool(parts[1].max(initial=0) <= 1)

    def why_not_resampled(self, parts: Parts) -> str:
        """Empty where it may be."""
        if self.most_resampled is not None and parts[0].size > self.most_resampled:
            return "computing the metric again for resampled items takes too long"
        return ""


def refuse(text: str) -> InvalidRequest:
    return InvalidRequest(text, code=CODE)


def other_shape(text: str, labels: Array, output: Output, wanted: Sequence[int], kind: str) -> InvalidRequest:
    shape = f"[items{''.join(f', {size}' for size in wanted)}]"
    return refuse(
        f"{text} takes labels of shape {shape}, {kind}, for the output {output.name}; "
        f"these are {list(labels.shape)} of {labels.dtype}"
    )


def per_item(array: Array) -> Array:
    sums: Array = array.reshape(len(array), -1).sum(axis=1)
    return sums


def ratio(sums: Array, counts: Array) -> float:
    """NaN where nothing counts, as in resamples of items whose labels are ignored."""
    counted = float(counts.sum())
    return float(sums.sum()) / counted if counted else float("nan")


def objects(rows: Sequence[Array]) -> Array:
    """Arrays of several lengths, one for each item."""
    found = np.empty(len(rows), dtype=object)
    for number, row in enumerate(rows):
        found[number] = row
    return found


def items_differing(one: Parts, other: Parts) -> Array:
    """Whether what a metric made of each item differs between two contestants."""
    found = np.zeros(len(one[0]), dtype=bool)
    for mine, theirs in zip(one, other, strict=True):
        if mine.shape != theirs.shape:  # such as scores of more classes
            found[:] = True
        elif mine.dtype == object:  # rows of several lengths
            found |= np.array([not np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True)])
        else:
            found |= (mine != theirs).reshape(len(found), -1).any(axis=1)
    return found

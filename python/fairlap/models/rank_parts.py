"""How ranks divide a batch: each has as many items as the others, in the order of their numbers."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from fairlap.models.arrays import Arrays
from fairlap.models.modes import MODES
from fairlap.models.spec import BATCH, Spec
from fairlap.request.work import Mode

RANK_STATE = "rank/"
"""In an answer in mode "train": ``rank/1/weight/...`` is of the state of rank 1. That of rank 0 has the plain names."""


def part_of(array: npt.NDArray[Any], number: int, count: int) -> npt.NDArray[Any]:
    """Rows of the first axis. Labels of several rows for each item are divided alike."""
    rows = array.shape[0] // count
    return array[number * rows : (number + 1) * rows]


def parts_of(arrays: Arrays, number: int, count: int) -> dict[str, npt.NDArray[Any]]:
    return {name: part_of(array, number, count) for name, array in arrays.items()}


def why_not_divided(spec: Spec, mode: Mode, batch: int, ranks: int) -> str:
    """Why ranks cannot share this work; empty where they can."""
    facts = MODES[mode]
    if not facts.shared_by_ranks:
        return f"ranks share steps of training or batches of inference; mode {mode} has neither"
    if facts.trains and spec.has_statistics():
        return f"{spec.name} normalises by the batch, and each rank would normalise by its own part of it"
    if batch % ranks:
        return f"a batch of {batch} cannot be divided equally among {ranks} ranks"
    for tensor in (*spec.inputs, *(spec.outputs if facts.gives_outputs else ())):
        if tensor.shape[:1] != (BATCH,):
            return f"the first axis of {tensor.name} is not the batch, so it cannot be divided among ranks"
    return ""

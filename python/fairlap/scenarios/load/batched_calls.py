"""Requests that are served by one call.

The contestant is prepared for some batches, and a group is padded to the next of them. Gathering the items is part of
the service.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.frameworks.contract import Contestant
from fairlap.models.arrays import Arrays, repeated_items
from fairlap.models.spec import BATCH
from fairlap.models.workload import Workload


@dataclass(frozen=True)
class GroupResult:
    """What one call returned for several requests. ``inputs`` stay until it was read: some frameworks point to them."""

    contestant: Contestant
    result: Any
    items: npt.NDArray[np.uint32]
    inputs: Arrays

    def wait(self) -> None:
        if self.contestant.done is not None:
            self.contestant.done(self.result)

    def outputs_of(self, item: int, axes: Mapping[str, int]) -> Arrays:
        """Take the rows of one item; ``axes`` are those of the batch, by output."""
        place = int(np.flatnonzero(self.items == item)[0])
        outputs = self.contestant.outputs(self.result)
        return {name: array.take([place], axis=axes[name]) for name, array in outputs.items()}


GroupCall = Callable[[npt.NDArray[np.uint32]], GroupResult]


def prepared_batches(largest: int) -> list[int]:
    """Powers of two, and the largest itself."""
    powers = [2**power for power in range(1, largest.bit_length()) if 2**power < largest]
    return [*powers, largest] if largest > 1 else []


class BatchedCalls:
    """The same model at several batches, built once for all trials."""

    def __init__(self, work: Workload, largest: int, build: Callable[[Workload], Contestant]) -> None:
        self._batches = prepared_batches(largest)
        tensors = {tensor.name: tensor.shape for tensor in work.spec.inputs}
        self._axes = {name: shape.index(BATCH) for name, shape in tensors.items()}
        self.output_axes = {tensor.name: tensor.shape.index(BATCH) for tensor in work.spec.outputs}
        self.contestants = []
        for batch in self._batches:
            inputs = {name: repeated_items(array, tensors[name], batch) for name, array in work.inputs.items()}
            contestant = build(replace(work, batch=batch, inputs=inputs, labels=None))
            self.contestants.append(contestant)
            first = contestant.bind(inputs)()  # the first call may compile
            if contestant.done is not None:
                contestant.done(first)

    def on(self, items: Sequence[Arrays]) -> GroupCall:
        """Make the callable of a group that asks about some of these."""

        def call(group: npt.NDArray[np.uint32]) -> GroupResult:
            place = bisect_left(self._batches, len(group))
            padded = [*group, *[group[-1]] * (self._batches[place] - len(group))]
            inputs = {
                name: np.concatenate([items[item][name] for item in padded], axis=axis)
                for name, axis in self._axes.items()
            }
            contestant = self.contestants[place]
            # The engine may reuse the array of items for the next group.
            return GroupResult(contestant, contestant.bind(inputs)(), group.copy(), inputs)

        return call

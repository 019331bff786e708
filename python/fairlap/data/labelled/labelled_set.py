"""Items with their labels: some to learn from, and others that are held out to see what was learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays, Labels, hash_of

_HELD_OUT = 0.2  # of all items


@dataclass(frozen=True)
class LabelledSet:
    inputs: Arrays  # by the model's names, in its types
    labels: Labels
    held_inputs: Arrays
    held_labels: Labels
    origin: str  # where it is from, and its licence

    @property
    def hash(self) -> str:
        held = {f"held {name}": array for name, array in self.held_inputs.items()}
        return hash_of({**self.inputs, **held, "labels": self.labels, "held labels": self.held_labels})


def parted(inputs: Arrays, labels: Labels, origin: str) -> LabelledSet:
    """The same items are held out every time."""
    places = np.random.default_rng(0).permutation(len(labels))
    held, learnt = np.split(places, [round(_HELD_OUT * len(labels))])

    def at(array: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(array[rows])

    return LabelledSet(
        {name: at(array, learnt) for name, array in inputs.items()},
        at(labels, learnt),
        {name: at(array, held) for name, array in inputs.items()},
        at(labels, held),
        origin,
    )

"""The items that requests ask about: those with a known answer, and others that no request has had before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.scenarios.calls.timed_inputs import in_memory

_NEW_IN_A_TRIAL = 11
_MOST_NEW_BYTES = 64 * 2**20
_FEWEST_UNIQUE = 8


class ItemPool:
    """``known`` are read once; their answers are compared with the reference by their place."""

    def __init__(self, sets: Sequence[Arrays], unseen: Sequence[str]) -> None:
        names = list(sets[0])
        files = (safetensors.read(Path(file)) for file in unseen)
        self.known: list[Arrays] = [
            *sets,
            *({name: in_memory(arrays[name]) for name in names} for arrays in files),
        ]

    def of_a_trial(self, seed: int) -> list[Arrays]:
        """List the items of a trial, the known ones first."""
        return [*self.known, *self.new(_NEW_IN_A_TRIAL, seed)]

    def new(self, count: int, seed: int) -> list[Arrays]:
        """Make items that never occurred, by putting elements in another order: their values are as they should be.

        There are fewer where they are large.
        """
        first = self.known[0]
        size = sum(array.nbytes for array in first.values())
        count = max(min(count, int(_MOST_NEW_BYTES / max(size, 1))), min(count, _FEWEST_UNIQUE))
        rng = np.random.default_rng(seed)
        chosen = (self.known[int(rng.integers(len(self.known)))] for _ in range(count))
        return [{name: in_memory(rng.permuted(array, axis=None)) for name, array in item.items()} for item in chosen]

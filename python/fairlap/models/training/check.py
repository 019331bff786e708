"""Compare a contestant's training steps with the reference's.

Where a unit is within rounding of a kink, such as that of a ReLU, it may take the other side, and a right contestant
ends farther away than rounding explains. Sums of many terms round more than single numbers, so such contestants are
compared with steps from weights and inputs that were moved by more. They may end as far away as those do, but not where
a known mistake ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property

import numpy as np

from fairlap import quantity_text
from fairlap.models.training.exercise import Array, Exercise, Trained, distances, trained_at_kinks
from fairlap.models.training.in_bfloat16 import (
    end_of,
    trained_in_precision,
    trained_with_lost_sums,
)
from fairlap.models.training.mistakes import mistakes, nearest_mistake, what_it_did
from fairlap.models.training.reference import NotComputed

_SURELY_SEEN = 1.5  # in multiples of what is allowed


class TrainingCheck:
    """What the steps of contestants are compared with. Most of it is computed for the first one that needs it."""

    def __init__(self, exercise: Exercise, found: Trained | None = None) -> None:
        self.exercise = exercise
        self.found = trained_in_precision(exercise) if found is None else found

    @np.errstate(over="ignore", invalid="ignore")  # training may diverge
    def judged(self, got: Mapping[str, Array]) -> tuple[dict[str, float], str]:
        """Compute ``distances`` of its arrays, and describe what it did instead, or what is peculiar to it, if known.

        No distance of a right contestant is above 1.
        """
        apart = distances(self.found, got)
        if max(apart.values()) <= 1:
            return apart, ""
        if why := what_it_did(self.found, self.exercise, got, self.mistakes):
            return apart, why
        beyond, rounds = apart, self.exercise.precision != "fp32"
        apart = distances(self.widened, got)
        why = nearest_mistake(self.found, got, self.mistakes) if max(apart.values()) > 1 else ""
        return apart, why or (self._lost(beyond, got) if rounds else "")

    @np.errstate(over="ignore", invalid="ignore")
    def unseen_mistakes(self) -> dict[str, float]:
        """List the known mistakes that may end within what is allowed, and how far from the reference."""
        apart = {what: max(distances(self.found, end).values()) for what, end in self.mistakes.items()}
        return {what: distance for what, distance in apart.items() if distance < _SURELY_SEEN}

    def _lost(self, apart: Mapping[str, float], got: Mapping[str, Array]) -> str:
        worst = max(apart, key=lambda name: apart[name])
        if worst not in got or got[worst].shape != self.found.expected[worst].shape:
            return ""
        way = float(np.linalg.norm(self.found.expected[worst] - self.exercise.start.named().get(worst, 0.0)))
        off = float(np.linalg.norm(got[worst].astype(np.float64) - self.found.expected[worst]))
        share = f", by {quantity_text.share(off / way)} of how far it moves" if way > 0 and math.isfinite(off) else ""
        return f"its {worst.replace('/', ' ')} is farther off than rounding to bfloat16 explains{share}"

    @cached_property
    def mistakes(self) -> Mapping[str, Mapping[str, Array]]:
        """Where known mistakes end."""
        found: dict[str, Mapping[str, Array]] = {}
        for what, other in mistakes(self.exercise):
            with suppress(NotComputed):  # a user's model may be bound to its batch
                found[what] = end_of(other)
        return found

    @cached_property
    def widened(self) -> Trained:
        """Steps that round to bfloat16 have taken the other side of kinks already."""
        if self.exercise.precision == "fp32":
            return trained_at_kinks(self.exercise, self.found)
        return trained_with_lost_sums(self.exercise, self.found)

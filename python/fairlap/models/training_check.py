"""Compare a contestant's training steps with the reference's.

Where a unit is within rounding of a kink, such as that of a ReLU, it may take the other side, and a right contestant
ends farther away than rounding explains. Sums of many terms round more than single numbers, so such contestants are
compared with steps from weights and inputs that were moved by more. They may end as far away as those do, but not where
a known mistake ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from fairlap.models.training_exercise import Array, Exercise, Trained, distances, trained, trained_at_kinks
from fairlap.models.training_mistakes import mistakes, nearest_mistake, what_it_did


class TrainingCheck:
    """What the steps of contestants are compared with. Most of it is computed for the first one that needs it."""

    def __init__(self, exercise: Exercise, found: Trained | None = None) -> None:
        self.exercise = exercise
        self.found = trained(exercise) if found is None else found

    def judged(self, got: Mapping[str, Array]) -> tuple[dict[str, float], str]:
        """``distances`` of its arrays, and what it did instead, as far as that is known. No distance of a right
        contestant is above 1."""
        apart = distances(self.found, got)
        if max(apart.values()) <= 1:
            return apart, ""
        if why := what_it_did(self.found, self.exercise, got, self.mistakes):
            return apart, why
        apart = distances(self.at_kinks, got)
        return apart, nearest_mistake(self.found, got, self.mistakes) if max(apart.values()) > 1 else ""

    @cached_property
    def mistakes(self) -> Mapping[str, Mapping[str, Array]]:
        """Where known mistakes end."""
        return {what: other.taken() for what, other in mistakes(self.exercise)}

    @cached_property
    def at_kinks(self) -> Trained:
        return trained_at_kinks(self.exercise, self.found)

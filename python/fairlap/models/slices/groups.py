"""Scores by group of items, and whether they change more from contestant to contestant in one group than in others.

Where items are right or wrong, changes are means over items. The figures of other metrics are computed again of items
that are drawn again within each group, the same ones for all contestants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fairlap.models.metrics.metric import Array, Parts, items_differing
from fairlap.models.slices.figures import RESAMPLES, NoChange, require_resampled, score_or_none, value_of
from fairlap.models.slices.slice_scores import SliceChange
from fairlap.models.task_metrics import Score, metric_named
from fairlap.verdict.scores.changes import Change, change_of_shares, change_resampled, unequal_change

BY_ITEM = "Welch's test over items"
BY_RESAMPLES = "Welch's test of resampled items"

Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Grouped:
    """What a metric made of the items of one contestant, with the number of each item's group."""

    metric: str
    parts: Parts
    groups: Array
    names: Sequence[str]

    def inside(self, group: int) -> Places:
        return np.flatnonzero(self.groups == group)

    def outside(self, group: int) -> Places:
        return np.flatnonzero(self.groups != group)

    @cached_property
    def is_right_or_wrong(self) -> bool:
        return metric_named(self.metric).is_right_or_wrong(self.parts)

    @cached_property
    def figures(self) -> Mapping[tuple[int, bool], tuple[float, Array]]:
        """By group, and whether of it or of all others: the figure, and again of items that are drawn again."""
        found = {}
        drawn = np.random.default_rng(0)
        again = [np.concatenate([*self._redrawn(drawn)]) for _ in range(RESAMPLES)]
        of_groups = np.concatenate([self.groups[self.inside(group)] for group in range(len(self.names))])
        for group in range(len(self.names)):
            for is_inside in (True, False):
                whole = self.inside(group) if is_inside else self.outside(group)
                chosen = (of_groups == group) == is_inside
                values = np.array([self._figure(places[chosen]) for places in again])
                found[group, is_inside] = (self._figure(whole), values)
        return found

    def _redrawn(self, drawn: np.random.Generator) -> Iterator[Places]:
        for group in range(len(self.names)):
            places = self.inside(group)
            yield places[drawn.integers(0, len(places), len(places))]

    def _figure(self, places: Places) -> float:
        return value_of(self.metric, tuple(each[places] for each in self.parts))


def scores_by_group(grouped: Grouped) -> dict[str, Score | None]:
    return {
        name: score_or_none(grouped.metric, tuple(each[grouped.inside(group)] for each in grouped.parts))
        for group, name in enumerate(grouped.names)
    }


def changes_by_group(own: Grouped, other: Grouped, against: str, against_work: str) -> list[SliceChange]:
    """From the other contestant to this one; each group is compared with all other items."""
    method = BY_ITEM if own.is_right_or_wrong else BY_RESAMPLES
    change = _of_shares if own.is_right_or_wrong else _of_figures
    found = []
    for group, name in enumerate(own.names):
        whose = (own.metric, name, against, against_work)
        try:
            inside, outside = change(own, other, group, True), change(own, other, group, False)
        except NoChange as none:
            found.append(SliceChange(*whose, None, None, None, 0.0, "", str(none)))
        else:
            apart = unequal_change(inside, outside, method)
            changes = (inside.difference, outside.difference)
            found.append(SliceChange(*whose, *changes, apart.standard_error, apart.degrees, method))
    return found


def _of_shares(own: Grouped, other: Grouped, group: int, is_inside: bool) -> Change:
    chosen = (own.parts[1] > 0) & ((own.groups == group) == is_inside)
    if not chosen.any():
        raise NoChange("none of its items counts" if is_inside else "no other item counts")
    right, other_right = (each.parts[0][chosen] > 0 for each in (own, other))
    return change_of_shares(right.astype(float) - other_right)


def _of_figures(own: Grouped, other: Grouped, group: int, is_inside: bool) -> Change:
    items = len(own.inside(group) if is_inside else own.outside(group))
    require_resampled(own.metric, own.parts, items, int(items_differing(own.parts, other.parts).sum()))
    (value, again), (other_value, other_again) = (each.figures[group, is_inside] for each in (own, other))
    differences = again - other_again
    differences = differences[np.isfinite(differences)]
    if not np.isfinite(value - other_value) or len(differences) < RESAMPLES / 2:
        raise NoChange("too many resamples of its items have no such figure")
    return change_resampled(value - other_value, differences, items)

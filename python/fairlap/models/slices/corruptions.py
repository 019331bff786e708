"""Scores on corrupted data, and whether they fall further from contestant to contestant than on the data as they are.

Each item is compared with itself: its change under corruptions less its change without. Corruptions count alike,
whatever the number of their severities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairlap.models.metrics.metric import Array, Parts, items_differing
from fairlap.models.slices.figures import RESAMPLES, NoChange, require_resampled, score_or_none, value_of
from fairlap.models.slices.slice_scores import SliceChange
from fairlap.models.task_metrics import Score, metric_named
from fairlap.request.fields.data.corruption import Corruption
from fairlap.verdict.scores.changes import Change, change_of_shares, change_resampled

ALL = "all"
BY_ITEM = "Student's test over items"
BY_RESAMPLES = "Student's test of resampled items"


@dataclass(frozen=True)
class Corrupted:
    """What a metric made of the items of one contestant, as they are and under each corruption."""

    metric: str
    clean: Parts
    parts: Mapping[Corruption, Parts]

    @cached_property
    def is_right_or_wrong(self) -> bool:
        return all(metric_named(self.metric).is_right_or_wrong(each) for each in (self.clean, *self.parts.values()))

    @cached_property
    def figures(self) -> tuple[Array, Array]:
        """Compute the figure as the data are and under each corruption; and again of items that are drawn again."""
        drawn, items = np.random.default_rng(0), len(self.clean[0])
        of_all = self._figures(np.arange(items))
        return of_all, np.array([self._figures(drawn.integers(0, items, items)) for _ in range(RESAMPLES)])

    def _figures(self, places: Array) -> Array:
        every = (self.clean, *self.parts.values())
        return np.array([value_of(self.metric, tuple(each[places] for each in parts)) for parts in every])


def corrupted_scores(corrupted: Corrupted) -> dict[str, Score | None]:
    return {each.text: score_or_none(corrupted.metric, parts) for each, parts in corrupted.parts.items()}


def changes_by_corruption(own: Corrupted, other: Corrupted, against: str, against_work: str) -> list[SliceChange]:
    """From the other contestant to this one, under each corruption and under all of them."""
    names = list(dict.fromkeys(each.name for each in own.parts))
    slices = {name: _weights(own.parts, [name]) for name in names}
    if len(names) > 1:
        slices[ALL] = _weights(own.parts, names)
    method = BY_ITEM if own.is_right_or_wrong else BY_RESAMPLES
    change = _of_shares if own.is_right_or_wrong else _of_figures
    found = []
    for name, weights in slices.items():
        whose = (own.metric, name, against, against_work)
        try:
            corrupted, clean, apart = change(own, other, weights)
        except NoChange as none:
            found.append(SliceChange(*whose, None, None, None, 0.0, "", str(none)))
        else:
            found.append(SliceChange(*whose, corrupted, clean, apart.standard_error, apart.degrees, method))
    return found


def _weights(parts: Mapping[Corruption, Parts], names: Sequence[str]) -> Array:
    """Of each variant: every corruption counts alike, and every severity of it."""
    count = {name: sum(each.name == name for each in parts) for name in names}
    return np.array([1 / count[each.name] / len(names) if each.name in names else 0.0 for each in parts])


def _of_shares(own: Corrupted, other: Corrupted, weights: Array) -> tuple[float, float, Change]:
    counted = own.clean[1] > 0
    if not counted.any():
        raise NoChange("no item counts")

    def differences(one: Parts, two: Parts) -> Array:
        found: Array = (one[0][counted] > 0).astype(float) - (two[0][counted] > 0)
        return found

    clean = differences(own.clean, other.clean)
    each = [differences(own.parts[which], other.parts[which]) for which in own.parts]
    corrupted = np.array(each).T @ weights
    return float(corrupted.mean()), float(clean.mean()), change_of_shares(corrupted - clean)


def _of_figures(own: Corrupted, other: Corrupted, weights: Array) -> tuple[float, float, Change]:
    items = len(own.clean[0])
    differing = [items_differing(own.parts[each], other.parts[each]) for each in own.parts]
    require_resampled(own.metric, own.clean, items, int(np.logical_or.reduce(differing).sum()))
    (values, again), (other_values, other_again) = own.figures, other.figures
    of_all, redrawn = values - other_values, again - other_again
    corrupted, clean = float(of_all[1:] @ weights), float(of_all[0])
    apart = redrawn[:, 1:] @ weights - redrawn[:, 0]
    apart = apart[np.isfinite(apart)]
    if not np.isfinite(corrupted - clean) or len(apart) < RESAMPLES / 2:
        raise NoChange("too many resamples of the items have no such figure")
    return corrupted, clean, change_resampled(corrupted - clean, apart, items)

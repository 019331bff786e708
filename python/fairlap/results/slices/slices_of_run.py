"""All scores of a run on slices of the data, by contestant and work, then by metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.race.run import Run
from fairlap.results.slices.compared_with import Key
from fairlap.results.slices.corruptions import scores_on_corrupted
from fairlap.results.slices.groups import grouped_scores
from fairlap.results.slices.slice_score import CorruptedScore, GroupedScore


@dataclass(frozen=True)
class Slices:
    groups: Mapping[Key, dict[str, GroupedScore]]
    corrupted: Mapping[Key, dict[str, CorruptedScore]]


def slices_of_run(run: Run, baseline: str = "") -> Slices:
    return Slices(grouped_scores(run, baseline), scores_on_corrupted(run, baseline))

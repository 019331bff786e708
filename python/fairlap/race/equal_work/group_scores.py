"""Scores by group of items, and how they differ from those of the contestants that answered the same items before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlap.models.array_files import safetensors
from fairlap.models.metrics.metric import Parts
from fairlap.models.slices.groups import Grouped, changes_by_group, scores_by_group
from fairlap.models.slices.slice_scores import GroupScores
from fairlap.models.sources.bundle import GROUPS, bundle_in, labels_file
from fairlap.scenarios.process_result import ProcessResult

Key = tuple[str, str]  # a contestant, and the id of its work


class ScoresByGroup:
    """Of one race. All models of a race answer the same items, so each is compared with every one before it."""

    def __init__(self) -> None:
        self._grouped: dict[Key, dict[str, Grouped]] = {}
        self._found: dict[Key, tuple[int, GroupScores]] = {}  # with the block of the process that has it

    def take(self, process: ProcessResult, items: Mapping[str, Parts], folder: Path) -> None:
        """Record it once for each contestant, in the process of the block in which it first answered."""
        names = bundle_in(folder).groups
        key = (process.contestant, process.work_id)
        if not names:
            return
        if key not in self._found:
            groups = safetensors.read(labels_file(folder))[GROUPS]
            own = {metric: Grouped(metric, parts, groups, names) for metric, parts in items.items()}
            self._found[key] = (process.block, self._compared(own))
            self._grouped[key] = own
        block, found = self._found[key]
        if process.block == block:
            process.groups = found

    def _compared(self, own: Mapping[str, Grouped]) -> GroupScores:
        changes = [
            change
            for (contestant, work_id), other in self._grouped.items()
            for metric, grouped in own.items()
            for change in changes_by_group(grouped, other[metric], contestant, work_id)
        ]
        return GroupScores({metric: scores_by_group(grouped) for metric, grouped in own.items()}, changes)

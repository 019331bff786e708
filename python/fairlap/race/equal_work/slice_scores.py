"""Scores by group and on corrupted data, and how they differ from those of contestants that answered before.

All models of a race answer the same items, so each is compared with every one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from fairlap.models.metrics.metric import Array, Parts
from fairlap.models.slices.corruptions import Corrupted, changes_by_corruption, corrupted_scores
from fairlap.models.slices.groups import Grouped, changes_by_group, scores_by_group
from fairlap.models.slices.slice_scores import CorruptedScores, GroupScores
from fairlap.request.fields.corruption import Corruption
from fairlap.scenarios.process_result import ProcessResult

_Scores = TypeVar("_Scores")
Key = tuple[str, str]  # a contestant, and the id of its work


class FoundOnce(Generic[_Scores]):
    """What is found once for each contestant, in the process of the block in which it first answered."""

    def __init__(self) -> None:
        self._found: dict[Key, tuple[int, _Scores]] = {}

    def of(self, process: ProcessResult, find: Callable[[], _Scores]) -> _Scores | None:
        """None in other processes."""
        key = (process.contestant, process.work_id)
        if key not in self._found:
            self._found[key] = (process.block, find())
        block, found = self._found[key]
        return found if process.block == block else None


class ScoresByGroup:
    """Of one race."""

    def __init__(self) -> None:
        self._earlier: dict[Key, dict[str, Grouped]] = {}
        self._once: FoundOnce[GroupScores] = FoundOnce()

    def take(self, process: ProcessResult, items: Mapping[str, Parts], groups: Array, names: tuple[str, ...]) -> None:
        def find() -> GroupScores:
            own = {metric: Grouped(metric, parts, groups, names) for metric, parts in items.items()}
            changes = [
                change
                for whose, other in self._earlier.items()
                for metric, grouped in own.items()
                for change in changes_by_group(grouped, other[metric], *whose)
            ]
            self._earlier[process.contestant, process.work_id] = own
            return GroupScores({metric: scores_by_group(grouped) for metric, grouped in own.items()}, changes)

        process.groups = self._once.of(process, find)


class ScoresOfCorrupted:
    """Of one race."""

    def __init__(self) -> None:
        self._earlier: dict[Key, dict[str, Corrupted]] = {}
        self._once: FoundOnce[CorruptedScores] = FoundOnce()

    def take(
        self,
        process: ProcessResult,
        items: Mapping[str, Parts],
        corruptions: tuple[Corruption, ...],
        answered: Callable[[Corruption], Mapping[str, Parts]],
    ) -> None:
        """``answered`` has the contestant answer all items under a corruption."""

        def find() -> CorruptedScores:
            found = {corruption: answered(corruption) for corruption in corruptions}
            own = {
                metric: Corrupted(metric, clean, {which: parts[metric] for which, parts in found.items()})
                for metric, clean in items.items()
            }
            changes = [
                change
                for whose, other in self._earlier.items()
                for metric, corrupted in own.items()
                for change in changes_by_corruption(corrupted, other[metric], *whose)
            ]
            self._earlier[process.contestant, process.work_id] = own
            return CorruptedScores({metric: corrupted_scores(each) for metric, each in own.items()}, changes)

        process.corrupted = self._once.of(process, find)

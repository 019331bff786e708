"""Scores of slices of the data, and how they differ from those of contestants that answered before.

All models of a race answer the same items, so each is compared with every one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from fairlap.models.slices.slice_scores import SliceChange, SliceScores
from fairlap.models.task_metrics import Score
from fairlap.scenarios.process_result import ProcessResult

Answered = TypeVar("Answered")
Key = tuple[str, str]  # a contestant, and the id of its work


class ScoresOfSlices(Generic[Answered]):
    """Of one race and one kind of slice: found once for each contestant, in the block in which it first answered."""

    def __init__(
        self,
        scores: Callable[[Answered], dict[str, Score | None]],
        changes: Callable[[Answered, Answered, str, str], list[SliceChange]],
    ) -> None:
        self._scores, self._changes = scores, changes
        self._earlier: dict[Key, Mapping[str, Answered]] = {}
        self._found: dict[Key, tuple[int, SliceScores]] = {}  # with the number of its block

    def of(self, process: ProcessResult, answered: Callable[[], Mapping[str, Answered]]) -> SliceScores | None:
        """None in later blocks. ``answered`` gives, by metric, what it made of the answers."""
        key = (process.contestant, process.work_id)
        if key not in self._found:
            self._found[key] = (process.block, self._compared(key, answered()))
        block, found = self._found[key]
        return found if process.block == block else None

    def _compared(self, key: Key, own: Mapping[str, Answered]) -> SliceScores:
        changes = [
            change
            for whose, other in self._earlier.items()
            for metric, each in own.items()
            for change in self._changes(each, other[metric], *whose)
        ]
        self._earlier[key] = own
        return SliceScores({metric: self._scores(each) for metric, each in own.items()}, changes)

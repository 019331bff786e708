"""Which contestant a score of a slice is compared with: the one that it should do no worse than.

The first contestant on the first work is what all others start from, unless a baseline is given. One on another work,
in another precision or of another model, is compared with itself on the first work, where it raced there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairlap.models.slices.slice_scores import SliceScores
from fairlap.models.task_metrics import Score
from fairlap.race.planning.plan import Plan
from fairlap.race.run import Run
from fairlap.request.names import ContestantName
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult

Key = tuple[str, str]  # a contestant, and the id of its work


@dataclass(frozen=True)
class ComparedSlices:
    """Scores of slices of all contestants of a run, and the contestant that each is compared with."""

    found: Mapping[Key, SliceScores]
    others: Mapping[Key, Key | None]
    _scores_of_all: Mapping[Key, Mapping[str, Score]]

    @property
    def metrics(self) -> Iterable[str]:
        return dict.fromkeys(metric for key in self.others for metric in self.found[key].scores)

    def scores_of_all(self, metric: str) -> dict[Key, float]:
        """Those on all of the data."""
        return {key: own[metric].value for key, own in self._scores_of_all.items()}


def compared_slices(
    run: Run, slices_of: Callable[[ProcessResult], SliceScores | None], baseline: str
) -> ComparedSlices:
    """Gather what processes found, where there is any."""
    found: dict[Key, SliceScores] = {}
    of_all: dict[Key, Mapping[str, Score]] = {}
    for process in run.processes:
        if (slices := slices_of(process)) is not None:
            key = (process.contestant, process.work_id)
            found[key], of_all[key] = slices, process.scores
    return ComparedSlices(found, compared_with(run.plan, found, baseline), of_all)


def in_order(plan: Plan, keys: Collection[Key]) -> list[Key]:
    return [(name.text, work.id) for work in plan.works for name in plan.contestants if (name.text, work.id) in keys]


def compared_with(plan: Plan, keys: Collection[Key], baseline: str) -> Mapping[Key, Key | None]:
    """By contestant; None for the one that others are compared with."""
    ordered = in_order(plan, keys)
    if not ordered:
        return {}
    named = [key for key in ordered if key[0] == baseline]
    base = (named or ordered)[0]
    names = {name.text: name for name in plan.contestants}
    first = [key for key in ordered if _setting(plan, names, key) == _setting(plan, names, base)]
    found: dict[Key, Key | None] = {}
    for key in ordered:
        itself = [each for each in first if names[each[0]].plain_text == names[key[0]].plain_text and each != key]
        found[key] = None if key == base else (itself or [base])[0]
    return found


def compared_text(plan: Plan, key: Key, other: Key) -> str:
    """Name the other contestant, with its precision or its work where these are others."""
    names = {name.text: name for name in plan.contestants}
    work, own = _work(plan, names, other), _work(plan, names, key)
    if work == own or names[other[0]].precision is not None:
        return other[0]
    if work == own.in_precision(work.precision):
        return f"{other[0]} in {work.precision}"
    return f"{other[0]} on {work.label}"


def _setting(plan: Plan, names: Mapping[str, ContestantName], key: Key) -> tuple[str, object]:
    return key[1], names[key[0]].precision


def _work(plan: Plan, names: Mapping[str, ContestantName], key: Key) -> Work:
    works: Sequence[Work] = plan.works
    return next(each for each in works if each.id == key[1]).in_precision(names[key[0]].precision)

"""Race both ends of a history, search for the step between them, and race what was found with the point before it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from fairlap import quantity_text
from fairlap.bisection.answer import answer_of
from fairlap.bisection.bisect_request import E_BISECT, BisectRequest, checked, key_of
from fairlap.bisection.bisection import Bisection, ChangedPackage
from fairlap.bisection.contestants import Side
from fairlap.bisection.next_race import Costs
from fairlap.bisection.points.commits import commits_between
from fairlap.bisection.points.history import History
from fairlap.bisection.points.installed import Installed
from fairlap.bisection.points.releases import releases_between, releases_named
from fairlap.bisection.points.trees import Trees, Unprepared, held_folder, remove
from fairlap.bisection.races import ProgressFor, Raced, race
from fairlap.bisection.readings import Reading, levels_of
from fairlap.bisection.saved_search import SavedSearch, Skipped, read_search, write_search
from fairlap.bisection.search import Ended, RaceOf, Search
from fairlap.bisection.suite_member import with_benchmark
from fairlap.errors import FairlapError
from fairlap.launch.environments import InstallFailed
from fairlap.launch.packages.source_trees import NotBuilt
from fairlap.pull_request.checkouts import NoBaseline
from fairlap.race.progress import Silence

_HALF_WIDTH_OF_STEP = 0.25  # of the interval of the last race, as a share of the step
_FEWEST_AT_END, _MOST_AT_END = 12, 60
_MOST_LOST = 3  # races in a row that compared nothing, such as on a busy machine
_OF_BUDGET_FOR_ENDS = 0.5


class Places(Protocol):
    """Where the points of a history are made ready to race; ``built`` are those that are, by their ids."""

    built: set[str]

    def side(self, point: str, notify: Callable[[str], None]) -> Side: ...

    def changed(self, before: str, after: str) -> tuple[ChangedPackage, ...]: ...


def searched(
    request: BisectRequest,
    progress_for: ProgressFor = lambda plan, longest_s: Silence(),
    notify: Callable[[str], None] = lambda line: None,
) -> Bisection:
    """Name the commit or release; what was raced before an interruption, or before a budget ended, counts.

    Trees of commits are kept for as long as the same request may go on from them, environments of releases longer.
    """
    request = checked(request)
    releases = releases_named(request.releases) if request.releases else None
    history = (
        commits_between(request.repository, request.good, request.bad)
        if releases is None
        else releases_between(request, releases, notify)
    )
    release = "" if releases is None else releases.requirement(request.bad)
    request = with_benchmark(request, release, notify)
    with held_folder(key_of(request, history)) as folder:
        saved = read_search(folder)
        places: Places = (
            Trees(folder, request, history, saved.built)
            if releases is None
            else Installed(request, releases, saved.built)
        )
        searching = _Searching(request, history, folder, saved, places, progress_for, notify)
        found = searching.run()
        if not searching.may_go_on:
            remove(folder)
    return found


class _Searching:
    def __init__(
        self,
        request: BisectRequest,
        history: History,
        folder: Path,
        saved: SavedSearch,
        places: Places,
        progress_for: ProgressFor,
        notify: Callable[[str], None],
    ) -> None:
        self._request, self._history, self._folder = request, history, folder
        self._progress_for, self._notify = progress_for, notify
        self._saved, self._places = saved, places
        self._began_s = time.monotonic()
        self.may_go_on = False
        if self._saved.readings:
            races = len(self._saved.readings)
            notify(f"going on after {races} race{'s' if races > 1 else ''} of an earlier run of this command")

    def run(self) -> Bisection:
        ends = None if self._saved.readings else self._race_of_ends()
        if ends is not None and not ends.is_worse:
            return answer_of(self._request, self._history, self._saved, ends=ends)
        search = Search(
            self._history.last, float(self._request.sure), blocks=self._request.blocks, most_races=self._request.races
        )
        ended, why = self._searched(search)
        self.may_go_on = ended is None or ended.reason == "races_spent"
        step: Raced | None = None
        changed: tuple[ChangedPackage, ...] = ()
        if ended is not None and ended.reason == "sure":
            step = self._race_of_step(search, ended.suspects)
            changed = self._places.changed(*self._ids(ended.suspects))
            self.may_go_on = not step.is_worse  # with more blocks in this race
        return answer_of(
            self._request,
            self._history,
            self._saved,
            search=search,
            ended=ended,
            why=why,
            step=step,
            changed=changed,
        )

    def _race_of_ends(self) -> Raced:
        last = self._history.last
        budget_s = self._request.budget
        self._notify(f"racing both ends of {last} {self._history.noun}s")
        found = self._raced(0, last, None, None if budget_s is None else _OF_BUDGET_FOR_ENDS * float(budget_s))
        if found.failed:
            why = found.found.message.removeprefix("failed: ")
            raise FairlapError(f"the bad end cannot be raced: {why}", code=found.found.code or E_BISECT)
        if found.is_worse:
            self._keep(last, found)
        return found

    def _searched(self, search: Search) -> tuple[Ended | None, str]:
        """Race until the search ends by itself; else return why it did not."""
        lost = 0
        while True:
            step = search.next(self._saved.readings, self._saved.skipped, self._costs)
            if isinstance(step, Ended):
                return step, ""
            budget_s = self._request.budget
            if budget_s is not None and time.monotonic() - self._began_s > budget_s:
                return None, f"the budget of {float(budget_s):g} s is spent, and the same command goes on"
            found = self._race_of(step, search)
            lost = 0 if found is None or found.log_ratios else lost + 1
            if found is not None and lost == _MOST_LOST:
                return None, f"{lost} races in a row compared nothing: {found.found.message}"

    def _race_of(self, step: RaceOf, search: Search) -> Raced | None:
        """Race a commit against the good end; None where it is skipped."""
        name = self._history.points[step.position].name
        suspects, probability = search.likeliest(self._saved.readings, self._saved.skipped)
        likeliest = self._history.points[suspects[-1]].name
        self._notify(
            f"race {len(self._saved.readings) + 1}: {name}, {self._history.noun} {step.position} "
            f"of {self._history.last} (so far {quantity_text.probability(probability)} for {likeliest})"
        )
        try:
            found = self._raced(0, step.position, step.blocks, None)
        except (Unprepared, InstallFailed, NotBuilt) as error:
            if step.position == self._history.last:
                raise
            self._skip(step.position, str(error), error.code)
            return None
        raced_before = any(each.position == step.position for each in self._saved.readings)
        if found.failed and not raced_before:  # else it is lost, as on a busy machine
            self._skip(step.position, found.found.message, found.found.code)
            return None
        self._keep(step.position, found)
        return found

    def _race_of_step(self, search: Search, suspects: range) -> Raced:
        """Race the last suspect against what is before the first one, long enough for a narrow interval."""
        levels = levels_of(self._saved.readings)
        apart = max(abs(levels.by_position[self._history.last].log_ratio), search.floor)
        wanted = math.ceil(levels.block_variance * (2 / (_HALF_WIDTH_OF_STEP * apart)) ** 2)
        blocks = self._request.blocks or min(max(wanted, _FEWEST_AT_END), _MOST_AT_END)
        first, last = suspects[0] - 1, suspects[-1]
        self._notify(f"racing {self._history.points[last].name} against {self._history.points[first].name}")
        return self._raced(first, last, max(blocks, _FEWEST_AT_END), None)

    def _raced(self, earlier: int, later: int, blocks: int | None, budget_s: float | None) -> Raced:
        sides = [self._side(position) for position in (earlier, later)]
        try:
            found = race(self._request, sides[0], sides[1], blocks, budget_s, self._progress_for, self._notify)
        except NoBaseline as error:
            name = "the good end" if earlier == 0 else self._history.points[earlier].name
            raise FairlapError(f"{name} {str(error).removeprefix('the base ')}", code=error.code) from None
        self._saved.race_s += found.found.seconds
        return found

    def _ids(self, suspects: range) -> tuple[str, str]:
        """Of what is before the first suspect, and of the last one, which race in the end."""
        return self._history.points[suspects[0] - 1].id, self._history.points[suspects[-1]].id

    def _side(self, position: int) -> Side:
        point = self._history.points[position]
        known, began_s = point.id in self._places.built, time.monotonic()
        try:
            return self._places.side(point.id, self._notify)
        finally:
            if not known:
                self._saved.builds += 1
                self._saved.build_s += time.monotonic() - began_s
                write_search(self._folder, self._saved)

    def _keep(self, position: int, found: Raced) -> None:
        if found.log_ratios:
            self._saved.readings.append(Reading(position, found.log_ratios))
        write_search(self._folder, self._saved)

    def _skip(self, position: int, reason: str, code: str) -> None:
        self._notify(f"skipping {self._history.points[position].name}: {reason}")
        self._saved.skipped[position] = Skipped(reason, code)
        write_search(self._folder, self._saved)

    @property
    def _costs(self) -> Costs:
        saved: SavedSearch = self._saved
        built = [place for place, point in enumerate(self._history.points) if place and point.id in saved.built]
        return Costs(saved.race_s / max(saved.blocks, 1), saved.build_s / max(saved.builds, 1), built)

"""The search for the best settings of a contestant such as ``torch:best``, in small races before the race.

It changes one setting at a time, then those together that helped, and races the last candidates once more. In every
small race the candidates take turns with the default, and only ratios within a race count, so what the machine does
meanwhile hits both alike. The data are drawn from another seed than those of the race that follows.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.launch.runners import require_known
from fairlap.launch.worker_process import E_BUDGET
from fairlap.race.around_blocks.search_regret import LogTimes, further_blocks, log_times_of, regret_of
from fairlap.race.around_blocks.settings_search import Settings, SettingsSearch, SettingsTry, alternatives
from fairlap.race.around_blocks.settings_space import Space, space_of
from fairlap.race.counted_blocks import block_times_ns
from fairlap.race.planning.plan import Measuring, Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.progress import Messages, Progress
from fairlap.race.race import Race
from fairlap.request.names import ContestantName
from fairlap.scenarios.process_result import ProcessResult

VARIANT = "variant"
WORTH_IT = 0.99  # of the default's time: what is less than 1 % faster is not taken for faster
_IN_A_RACE = 3  # candidates, besides the default
_MOST_TOGETHER = 4  # settings of which all combinations are tried
_LAST_CANDIDATES = 2
_LAST_BLOCKS = 3
_LAST_ROUND = 3
_SHARE_OF_LAST_ROUND = 1 / 3  # of the budget, at least
_LEAST_STAGE_S = 10.0
_TIMES_THE_DEFAULT = 2.0  # as long may a candidate take to get ready, however little is left
_MEASURING = Measuring(seconds=0.2)
_OTHER_DATA = 100_003  # added to the race's seeds; inputs of one seed are also those of seeds 1000 and 2000 below


def with_best_settings(plan: Plan, progress: Progress | None = None) -> Plan:
    """Add the settings that were found, and the searches, to the plan; a plan that has them is returned unchanged."""
    progress = progress or Messages()
    searched = {search.contestant for search in plan.searches}
    contestants, searches = list(plan.contestants), list(plan.searches)
    open_ = {place: name for place, name in enumerate(contestants) if name.best and name.text not in searched}
    _require_searchable(plan, tuple(open_.values()))
    for place, name in open_.items():
        progress.announce(f"{name.text}: looking for its best settings, for {plan.best_budget_s:g} s at most")
        search = search_settings(plan, name, progress)
        progress.announce(f"{name.text}: raced with {_settings_text(search.found.items())}")
        contestants[place] = _with_settings(name, tuple(search.found.items()), name.text)
        searches.append(search)
    return msgspec.structs.replace(plan, contestants=tuple(contestants), searches=tuple(searches))


def _require_searchable(plan: Plan, names: tuple[ContestantName, ...]) -> None:
    """Before the first search: what is wrong with a name would be wrong with all of its candidates."""
    require_known(names)
    for name in names:
        if name.threads(plan.threads) > plan.threads:
            given = quantity_text.count(plan.threads, "thread")
            raise InvalidRequest(f"{name.text}: the race gives {given}, and no contestant may have more")


@dataclass
class _Search:
    plan: Plan
    name: ContestantName
    data_seed: int
    progress: Progress | None
    began_s: float = field(default_factory=time.monotonic)
    tries: list[SettingsTry] = field(default_factory=list)
    default_failed: bool = False
    out_of_time: bool = False
    longest_race_s: float = 0.0  # of those in which no process was given up
    default_ready_s: float = 0.0  # the longest that the default took
    last_log_times: LogTimes = field(default_factory=dict)  # in the last round

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began_s

    def race(self, candidates: Sequence[Settings], number: int, blocks: int = 1) -> dict[Settings, float]:
        """Race the candidates, and return the ratios to the default of those that ran.

        A race is not begun when it would not fit into the budget, and broken off where it does not after all.
        """
        candidates = [each for each in candidates if not self._hopeless(each)]
        if self.default_failed or not candidates:
            return {}
        is_last = number == _LAST_ROUND
        ends_s = self.plan.best_budget_s - (0.0 if is_last else self._kept_for_last_round_s)
        left_s = ends_s - self.seconds
        fitting = int(left_s / self.longest_race_s) if self.longest_race_s else 1
        if is_last:  # others may have waited for a candidate that is not among the last
            fitting = max(1, fitting)
        if left_s <= 0 or fitting < 1:
            self.out_of_time = True
            return {}
        began_s = time.monotonic()
        names = {settings: _with_settings(self.name, settings, _label(self.name, settings)) for settings in candidates}
        default = _with_settings(self.name, (), _label(self.name, ()))
        small = self._plan_of((default, *names.values()), min(blocks, fitting), number, left_s)
        running = Race(small, self.progress, ends_by_s=self.began_s + ends_s)
        running.run()
        if not any(_given_up(each) for each in running.processes):
            self.longest_race_s = max(self.longest_race_s, (time.monotonic() - began_s) / len(small.blocks))
        return self._keep({(): default, **names}, small, running.processes, number)

    @property
    def settings_that_ran(self) -> int:
        return len({frozenset(each.settings.items()) for each in self.tries if each.ratio is not None})

    @property
    def _kept_for_last_round_s(self) -> float:
        return max(_SHARE_OF_LAST_ROUND * self.plan.best_budget_s, self.longest_race_s)

    def _hopeless(self, candidate: Settings) -> bool:
        """Check whether a part of it, alone, did not run."""
        failed = (each.settings for each in self.tries if each.settings and each.ratio is None)
        return any(part.items() <= dict(candidate).items() for part in failed)

    def _keep(
        self, names: Mapping[Settings, ContestantName], small: Plan, processes: Sequence[ProcessResult], number: int
    ) -> dict[Settings, float]:
        """Every try of a small race, and the ratios of those that ran in all of its blocks."""
        by_settings = {settings: _of(processes, name.text) for settings, name in names.items()}
        self.out_of_time |= any(map(_given_up, processes))
        if len(_finished(by_settings[()])) < len(small.blocks):
            self.default_failed |= not any(map(_given_up, by_settings[()]))
        ready_s = (sum(each.phases_s.values()) for each in _finished(by_settings[()]))
        self.default_ready_s = max(self.default_ready_s, *ready_s, 0.0)
        if number == _LAST_ROUND:
            whole = {each: own for each, own in by_settings.items() if len(_finished(own)) == len(small.blocks)}
            self.last_log_times = log_times_of(whole, len(small.works)) if () in whole else {}
        ratios = {}
        for settings, own in by_settings.items():
            finished = _finished(own)
            ratio = _ratio(finished, _finished(by_settings[()]), len(small.blocks))
            if ratio is not None and settings:
                ratios[settings] = ratio
            failed = (f"{each.message} [{each.code}]" for each in own if not each.finished)
            why = next(failed, "it was not run in every block, or the default was not") if ratio is None else ""
            self.tries.append(SettingsTry(dict(settings), number, ratio, _by_work(finished), why))
        return ratios

    def _plan_of(self, contestants: tuple[ContestantName, ...], blocks: int, number: int, left_s: float) -> Plan:
        plan, limits = self.plan, self.plan.limits
        # One slow candidate must not take the time of the others. Those of the last round have run before.
        fair_s = max(left_s / 2, _LEAST_STAGE_S, _TIMES_THE_DEFAULT * self.default_ready_s)
        stage_s = left_s if number == _LAST_ROUND else fair_s
        drawn = draw_plan(
            contestants,
            plan.works,
            blocks=blocks,
            conditions=plan.headline,
            threads=plan.threads,
            available_cores=tuple(sorted(os.sched_getaffinity(0))),
            seed=plan.seed + len(self.tries) + number,
            data_seeds=(self.data_seed,),
            measuring=_MEASURING,
            limits=msgspec.structs.replace(
                limits,
                prepare_s=min(limits.prepare_s, stage_s),
                answer_s=min(limits.answer_s, stage_s),
                measure_s=min(limits.measure_s, stage_s),
            ),
            device=plan.device,
        )
        drawn = msgspec.structs.replace(
            drawn, sandbox=plan.sandbox, pass_env=plan.pass_env, lock_clocks=plan.lock_clocks
        )
        if not self.tries:  # alone: what one of them converts, such as a model for LiteRT, the others find in a cache
            return drawn
        # How long they take to import and to compile is not asked here, so later ones start side by side.
        together = tuple(msgspec.structs.replace(block, started="together") for block in drawn.blocks)
        return msgspec.structs.replace(drawn, blocks=together)


def search_settings(plan: Plan, name: ContestantName, progress: Progress | None = None) -> SettingsSearch:
    space: Space = space_of(name, plan.threads, plan.device, plan.headline)
    running = _Search(plan, name, max(plan.data_seeds) + _OTHER_DATA, progress)
    ratios: dict[Settings, float] = {}
    for group in _groups(alternatives(space.values)):
        ratios |= running.race(group, 1)
    for group in _groups(_together(_best_of_each(ratios))):
        ratios |= running.race(group, 2)
    last = sorted((settings for settings in ratios if ratios[settings] < WORTH_IT), key=ratios.__getitem__)
    last = last[:_LAST_CANDIDATES]
    blocks = _LAST_BLOCKS + further_blocks(running.seconds, running.longest_race_s, _LAST_BLOCKS, len(last))
    once_more = running.race(last, _LAST_ROUND, blocks)
    best = min(once_more, key=once_more.__getitem__, default=())
    found = best if best and once_more[best] < WORTH_IT else ()  # only what was faster once more
    return SettingsSearch(
        name.text,
        space.values,
        dict(found),
        once_more[found] if found else None,
        tuple(running.tries),
        "default" if running.default_failed else "budget" if running.out_of_time else "complete",
        running.seconds,
        running.data_seed,
        space.left_out,
        regret_of(found, running.last_log_times, running.settings_that_ran),
    )


def _groups(candidates: Sequence[Settings]) -> list[Sequence[Settings]]:
    return [candidates[first : first + _IN_A_RACE] for first in range(0, len(candidates), _IN_A_RACE)]


def _best_of_each(ratios: Mapping[Settings, float]) -> list[Settings]:
    """For every setting its best value, where that helped; the settings that helped most first."""
    best: dict[str, Settings] = {}
    for settings in sorted(ratios, key=ratios.__getitem__):
        if ratios[settings] < WORTH_IT:
            best.setdefault(settings[0][0], settings)
    return list(best.values())[:_MOST_TOGETHER]


def _together(helping: Sequence[Settings]) -> list[Settings]:
    """All combinations in which no setting has two values."""
    found = []
    for count in range(2, len(helping) + 1):
        for chosen in itertools.combinations(helping, count):
            settings = tuple(dict.fromkeys(itertools.chain.from_iterable(chosen)))
            if len(dict(settings)) == len(settings):
                found.append(settings)
    return found


def _with_settings(name: ContestantName, settings: Settings, text: str) -> ContestantName:
    """In the framework's own words: a variant and options, those that the user has given first."""
    options = (*name.options, *(each for each in settings if each[0] != VARIANT))
    return msgspec.structs.replace(name, text=text, variant=dict(settings).get(VARIANT, ""), options=options)


def _label(name: ContestantName, settings: Settings) -> str:
    return f"{name.text} with {_settings_text(settings)}"


def _settings_text(settings: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{setting} {value}" for setting, value in settings) or "its default settings"


def _given_up(process: ProcessResult) -> bool:
    return process.code in (E_BUDGET, "E_TIMEOUT")


def _of(processes: Sequence[ProcessResult], contestant: str) -> list[ProcessResult]:
    return [process for process in processes if process.contestant == contestant]


def _finished(processes: Sequence[ProcessResult]) -> list[ProcessResult]:
    return [process for process in processes if process.finished]


def _ratio(own: Sequence[ProcessResult], default: Sequence[ProcessResult], blocks: int) -> float | None:
    """Compute the geometric mean over blocks of all works; None where one of them did not finish all."""
    if min(len(own), len(default)) < blocks:
        return None
    if own == default:
        return 1.0
    times = block_times_ns({"own": own, "default": default})
    logs = [math.log(mine / other) for mine, other in zip(times["own"], times["default"], strict=True)]
    return math.exp(sum(logs) / len(logs))


def _by_work(processes: Sequence[ProcessResult]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for process in processes:
        found.setdefault(process.work_id, []).append(process.headline_ns)
    return {work: sorted(times)[(len(times) - 1) // 2] for work, times in found.items()}

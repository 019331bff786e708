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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from fairlap.frameworks.registry import framework_named
from fairlap.race.counted_blocks import block_times_ns
from fairlap.race.plan import Measuring, Plan, draw_plan
from fairlap.race.process_result import ProcessResult
from fairlap.race.race import Race
from fairlap.race.settings_search import SettingsSearch, SettingsTry
from fairlap.request.names import THREADS, ContestantName

VARIANT = "variant"
WORTH_IT = 0.99  # of the default's time: what is less than 1 % faster is not taken for faster
_IN_A_RACE = 3  # candidates, besides the default
_MOST_TOGETHER = 4  # settings of which all combinations are tried
_LAST_CANDIDATES = 2
_LAST_BLOCKS = 3
_LAST_ROUND = 3
_SHARE_OF_FIRST_ROUNDS = 2 / 3  # of the budget; the rest is for the last candidates
_LEAST_PREPARE_S = 10.0
_MEASURING = Measuring(seconds=0.2)
_OTHER_DATA = 100_003  # added to the race's seeds; inputs of one seed are also those of seeds 1000 and 2000 below

Settings = tuple[tuple[str, str], ...]


def with_best_settings(plan: Plan, report: Callable[[str], None] = lambda _: None) -> Plan:
    """The plan with the settings that were found, and the searches. A plan that has them is returned as it is."""
    searched = {search.contestant for search in plan.searches}
    contestants, searches = list(plan.contestants), list(plan.searches)
    for place, name in enumerate(plan.contestants):
        if name.best and name.text not in searched:
            report(f"{name.text}: looking for its best settings, for {plan.best_budget_s:g} s at most")
            search = search_settings(plan, name)
            report(f"{name.text}: raced with {_settings_text(search.found.items())}")
            contestants[place] = _with_settings(name, tuple(search.found.items()), name.text)
            searches.append(search)
    return msgspec.structs.replace(plan, contestants=tuple(contestants), searches=tuple(searches))


def space_of(name: ContestantName, threads: int, device: str) -> dict[str, tuple[str, ...]]:
    """By setting, the values besides the default. What the user has set is not searched."""
    tunable = framework_named(name.framework).tunable_for(device)
    fewer = tuple(str(count) for count in sorted({threads // 2, 1}, reverse=True) if 0 < count < threads)
    space = {**tunable, THREADS: fewer}
    given = dict(name.options)
    return {setting: tuple(values) for setting, values in space.items() if values and setting not in given}


@dataclass
class _Search:
    plan: Plan
    name: ContestantName
    data_seed: int
    began_s: float = field(default_factory=time.monotonic)
    tries: list[SettingsTry] = field(default_factory=list)
    default_failed: bool = False
    out_of_time: bool = False
    longest_race_s: float = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began_s

    def race(self, candidates: Sequence[Settings], number: int, blocks: int = 1) -> dict[Settings, float]:
        """Ratios to the default by candidate, of those that ran. Not begun when it would not fit into the budget."""
        if self.default_failed or not candidates:
            return {}
        is_last = number == _LAST_ROUND
        left_s = self.plan.best_budget_s * (1 if is_last else _SHARE_OF_FIRST_ROUNDS) - self.seconds
        fitting = int(left_s / self.longest_race_s) if self.longest_race_s else blocks
        if is_last:  # others may have waited for a candidate that is not among the last
            fitting = max(1, fitting)
        if left_s <= 0 or fitting < 1:
            self.out_of_time = True
            return {}
        blocks = min(blocks, fitting)
        began_s = time.monotonic()
        names = {settings: _with_settings(self.name, settings, _label(self.name, settings)) for settings in candidates}
        default = _with_settings(self.name, (), _label(self.name, ()))
        small = self._plan_of((default, *names.values()), blocks, number, left_s)
        running = Race(small)
        running.run()
        self.longest_race_s = max(self.longest_race_s, (time.monotonic() - began_s) / blocks)
        by_name = {name.text: _finished(running.processes, name.text) for name in small.contestants}
        if len(by_name[default.text]) < len(small.blocks):
            self.default_failed = True
        found = {}
        for settings, name in {(): default, **names}.items():
            own = by_name[name.text]
            ratio = None
            if len(own) == len(small.blocks) and not self.default_failed:
                ratio = _ratio({name.text: own, default.text: by_name[default.text]}, name.text, default.text)
                if settings:
                    found[settings] = ratio
            failed = (each for each in running.processes if each.contestant == name.text and not each.finished)
            why = next((f"{each.message} [{each.code}]" for each in failed), "")
            self.tries.append(SettingsTry(dict(settings), number, ratio, _by_work(own), why if ratio is None else ""))
        return found

    def _plan_of(self, contestants: tuple[ContestantName, ...], blocks: int, number: int, left_s: float) -> Plan:
        plan = self.plan
        here = tuple(sorted(os.sched_getaffinity(0)))
        return draw_plan(
            contestants,
            plan.works,
            blocks=blocks,
            conditions=plan.headline,
            threads=plan.threads,
            available_cores=here,
            seed=plan.seed + len(self.tries) + number,
            data_seeds=(self.data_seed,),
            measuring=_MEASURING,
            limits=msgspec.structs.replace(
                plan.limits, prepare_s=min(plan.limits.prepare_s, max(left_s / 2, _LEAST_PREPARE_S))
            ),
            device=plan.device,
        )


def search_settings(plan: Plan, name: ContestantName) -> SettingsSearch:
    space = space_of(name, plan.threads, plan.device)
    running = _Search(plan, name, max(plan.data_seeds) + _OTHER_DATA)
    singles: list[Settings] = [((setting, value),) for setting, values in space.items() for value in values]
    ratios: dict[Settings, float] = {}
    for group in _groups(singles):
        ratios |= running.race(group, 1)
    helping = _best_of_each(ratios)
    together = [
        tuple(itertools.chain.from_iterable(chosen))
        for count in range(2, len(helping) + 1)
        for chosen in itertools.combinations(helping, count)
    ]
    for group in _groups(together):
        ratios |= running.race(group, 2)
    last = sorted((settings for settings in ratios if ratios[settings] < WORTH_IT), key=ratios.__getitem__)
    once_more = running.race(last[:_LAST_CANDIDATES], _LAST_ROUND, _LAST_BLOCKS)
    best = min(once_more, key=once_more.__getitem__, default=())
    found = best if best and once_more[best] < WORTH_IT else ()  # only what was faster once more
    return SettingsSearch(
        name.text,
        space,
        dict(found),
        once_more[found] if found else None,
        tuple(running.tries),
        "default" if running.default_failed else "budget" if running.out_of_time else "complete",
        running.seconds,
        running.data_seed,
    )


def _groups(candidates: Sequence[Settings]) -> list[Sequence[Settings]]:
    return [candidates[first : first + _IN_A_RACE] for first in range(0, len(candidates), _IN_A_RACE)]


def _best_of_each(ratios: Mapping[Settings, float]) -> list[Settings]:
    """For every setting its best value, where that helped; the settings that helped most first."""
    best: dict[str, Settings] = {}
    for settings in sorted(ratios, key=ratios.__getitem__):
        [(setting, _)] = settings
        if ratios[settings] < WORTH_IT:
            best.setdefault(setting, settings)
    return list(best.values())[:_MOST_TOGETHER]


def _with_settings(name: ContestantName, settings: Settings, text: str) -> ContestantName:
    """In the framework's own words: a variant and options, those that the user has given first."""
    options = (*name.options, *(each for each in settings if each[0] != VARIANT))
    return msgspec.structs.replace(name, text=text, variant=dict(settings).get(VARIANT, ""), options=options)


def _label(name: ContestantName, settings: Settings) -> str:
    return f"{name.text} with {_settings_text(settings)}"


def _settings_text(settings: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{setting} {value}" for setting, value in settings) or "its default settings"


def _finished(processes: Sequence[ProcessResult], contestant: str) -> list[ProcessResult]:
    return [process for process in processes if process.contestant == contestant and process.finished]


def _ratio(compared: Mapping[str, Sequence[ProcessResult]], name: str, default: str) -> float:
    """The geometric mean over blocks of all works."""
    times = block_times_ns(compared)
    if name == default:
        return 1.0
    logs = [math.log(own / other) for own, other in zip(times[name], times[default], strict=True)]
    return math.exp(sum(logs) / len(logs))


def _by_work(processes: Sequence[ProcessResult]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for process in processes:
        found.setdefault(process.work, []).append(process.headline_ns)
    return {work: sorted(times)[(len(times) - 1) // 2] for work, times in found.items()}

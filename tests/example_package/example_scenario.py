"""A scenario of another package: how long the first call takes after the contestant had nothing to do for a while.

``compare --pause 2s`` asks for it. The time of a call stands in the rows beside it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from fairlap import verdict
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.request.names import ContestantName
from fairlap.request.units import Seconds
from fairlap.request.work import Work
from fairlap.scenarios.added import AddedFigure, Picture, Setting
from fairlap.scenarios.calls.latency_messages import Measure
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario
from fairlap.scenarios.process_result import ProcessResult

_AFTER = "first_call_after_pause_{}_ns"
_PAUSES = 3

PAUSE = Setting("pause", "Rank by the first call after so long a pause.", Seconds, "DURATION")


def _times_ns(process: ProcessResult) -> list[float]:
    return [process.machine[name] for name in map(_AFTER.format, range(_PAUSES)) if name in process.machine]


def _after_a_pause_ns(process: ProcessResult) -> float | None:
    return median(_times_ns(process)) if _times_ns(process) else None


def _added_by_the_pause_ns(process: ProcessResult) -> float | None:
    after_ns = _after_a_pause_ns(process)
    return None if after_ns is None else after_ns - process.headline_ns


def _points(process: ProcessResult) -> Iterator[dict[str, float | str]]:
    for place, time_ns in enumerate(_times_ns(process)):
        yield {"pause": place + 1, "ms": time_ns / 1e6}


def _spec() -> dict[str, Any]:
    return {
        "mark": {"type": "point", "filled": True},
        "encoding": {
            "x": {"field": "pause", "type": "ordinal", "title": "pause"},
            "y": {"field": "ms", "type": "quantitative", "title": "first call in ms"},
            "color": {"field": "contestant", "type": "nominal"},
        },
    }


class AfterAPause(Scenario):
    judges_rounds = False
    after_turns = "example_scenario:Pauses"
    settings = (PAUSE,)
    figures = (AddedFigure("added_by_the_pause_ns", _added_by_the_pause_ns),)
    pictures = (Picture("pauses", "First calls", "One mark for each pause of a process.", _points, _spec),)

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return PAUSE.name in asked.scenario_settings

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        pause_s = PAUSE.value_in(asked.scenario_settings)
        by = f"first call after {pause_s:g} s of pause"
        return Ruling(Judged(by, verdict.LATENCY, _after_a_pause_ns, period="after_turns"))


class Pauses(AfterTurns):
    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        pause_s = PAUSE.value_in(plan.scenario_settings)
        assert pause_s is not None
        self._pause_s, self._within_s = float(pause_s), plan.limits.measure_s
        self._times_ns: list[float] = []

    def goes_on(self, bench: Bench) -> bool:
        return len(self._times_ns) < _PAUSES

    def step(self, process: OneProcess) -> None:
        time.sleep(self._pause_s)
        one_call = Measure(samples=1, warmup=0, calls_per_sample=1)
        measured = process.ask(one_call, within_s=self._within_s)
        self._times_ns.append(1e9 * measured.elapsed_s)

    def end(self, process: OneProcess) -> None:
        found = {_AFTER.format(place): each for place, each in enumerate(self._times_ns)}
        process.result.machine = {**process.result.machine, **found}

"""What the checks of timed calls cost: the time of turns with drawn calls beyond that of others, and the plausibility.

Run it with the name of a model: python tests/bench/cost_of_checking.py convnet
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

from fairlap.models.registry import find
from fairlap.race.equal_work.timed_work import TimedWork
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.work import Work

CONTESTANTS = "torch,tensorflow:graph,jax,onnxruntime"
BLOCKS = 3


class Stopwatch:
    """Around the two methods of TimedWork."""

    def __init__(self) -> None:
        self.with_drawn_s: list[float] = []
        self.without_s: list[float] = []
        self.plausible_s = 0.0
        self._measure, self._require = TimedWork.measure, TimedWork.require_plausible

    def measure(self, work: TimedWork, worker: Any, turns_left: int, **limits: Any) -> Any:
        began_s = time.perf_counter()
        measured, samples = self._measure(work, worker, turns_left, **limits)
        warm_up_s = 0.0 if measured.warm_up is None else measured.warm_up.elapsed_s
        beyond_s = time.perf_counter() - began_s - measured.elapsed_s - warm_up_s
        (self.with_drawn_s if measured.drawn.calls else self.without_s).append(beyond_s)
        return measured, samples

    def require_plausible(self, work: TimedWork) -> None:
        began_s = time.perf_counter()
        self._require(work)
        self.plausible_s += time.perf_counter() - began_s


def main(model: str) -> None:
    cores = tuple(sorted(os.sched_getaffinity(0)))
    work = Work(model, find(model).spec.default_batch)
    watch = Stopwatch()
    TimedWork.measure = lambda self, *args, **limits: watch.measure(self, *args, **limits)  # type: ignore[method-assign]
    TimedWork.require_plausible = lambda self: watch.require_plausible(self)  # type: ignore[method-assign]
    names = Contestants(CONTESTANTS)
    plan = draw_plan(
        names, (work,), blocks=BLOCKS, conditions="as-found", threads=len(cores), available_cores=cores, seed=3
    )
    race = Race(plan)
    race.run()
    usual_s = statistics.median(watch.without_s)
    extra_s = sum(each - usual_s for each in watch.with_drawn_s) + watch.plausible_s
    whole_s = race.shares()["whole"]
    print(f"{model}: checking took {extra_s:.2f} s of {whole_s:.1f} s ({100 * extra_s / whole_s:.1f} %)")


if __name__ == "__main__":
    main(sys.argv[1])

"""The turns of callables that are compared in one process: each once in every block, in an order drawn for it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlap import quantity_text
from fairlap.engine import measure
from fairlap.engine.measurement import Measurement, Notice
from fairlap.scenarios.idle_threads import cpu_of_others_s, wait_until_quiet

INTERRUPTED = "interrupted"
# The noise of a block of short calls hardly depends on its length, so many short blocks are decided soonest.
SHORTEST_TURN_S = 0.002
LONGEST_TURN_S = 0.05
_WARM_UP_CALLS = 1  # in a block: the callable before has just used the caches
_LONGEST_WAIT_S = 5.0
_LATE_WORK_SHARE = 0.1  # of the measured time; a pool of threads spins for less before it sleeps
_TURN_OVER_LATE_WORK = 2 / _LATE_WORK_SHARE

Done = Callable[[Any], object]


@dataclass
class Arm:
    """One callable and what has been measured of it."""

    name: str
    fn: Callable[..., object]
    done: Done | None
    calls_per_sample: int = 1
    warnings: tuple[Notice, ...] = ()
    medians_ns: list[float] = field(default_factory=list)
    measured_s: float = 0.0
    late_s: float = 0.0  # CPU time that other threads used after its calls had returned

    @property
    def why_excluded(self) -> str:
        """Empty where it may be judged."""
        if self.done is not None or self.late_s <= _LATE_WORK_SHARE * self.measured_s:
            return ""
        return (
            f"no verdict on {self.name}: other threads worked for {quantity_text.seconds(self.late_s)} after its "
            f"calls had returned ({quantity_text.seconds(self.measured_s)} measured); if the calls are asynchronous, "
            "pass a done= that waits for them"
        )


class Turns:
    """``seconds`` is the length of a turn; where it is not fixed, it grows with what other threads do after a call."""

    def __init__(self, arms: Sequence[Arm], options: Mapping[str, Any], seconds: float, *, fixed: bool) -> None:
        self.arms = arms
        self.seconds = seconds
        self._fixed = fixed
        self._options = options

    def run(self, rng: random.Random, most_blocks: int, why_end: Callable[[], str]) -> str:
        """Each callable once, to warm up and to find how many calls make a sample; then block after block.

        Returns why it ended before the last block, or an empty text.
        """
        for arm in self.arms:
            first = self._timed(arm, "auto", "auto")
            if first.interrupted:
                return INTERRUPTED
            arm.calls_per_sample = first.calls_per_sample
            arm.warnings = first.warnings
        if not self._fixed:
            late_s = max(arm.late_s for arm in self.arms)
            self.seconds = max(self.seconds, min(LONGEST_TURN_S, _TURN_OVER_LATE_WORK * late_s))
        for arm in self.arms:
            arm.measured_s = arm.late_s = 0.0
        for _ in range(most_blocks):
            if why := why_end():
                return why
            for arm in rng.sample(self.arms, len(self.arms)):
                measurement = self._timed(arm, _WARM_UP_CALLS, arm.calls_per_sample)
                if measurement.interrupted:
                    return INTERRUPTED
                arm.medians_ns.append(measurement.median_ns)
        return ""

    def _timed(self, arm: Arm, warmup: Any, calls_per_sample: Any) -> Measurement:
        cpu_of_others_before_s = cpu_of_others_s()
        found = measure(
            arm.fn,
            done=arm.done,
            name=arm.name,
            warmup=warmup,
            calls_per_sample=calls_per_sample,
            seconds=self.seconds,
            **self._options,
        )
        arm.measured_s += found.elapsed_s
        arm.late_s += wait_until_quiet(_LONGEST_WAIT_S, cpu_of_others_before_s)
        return found

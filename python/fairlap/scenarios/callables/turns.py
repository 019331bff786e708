"""The turns of callables that are compared in one process: each once in every block, in an order drawn for it."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.calls_in_turns import CallsInTurns, Rounds
from fairlap.engine.measure_call import require_started, timed
from fairlap.engine.measurement import CallableRaised, Measurement, Notice
from fairlap.errors import described
from fairlap.meters.sample_clocks import SampleClocks, cycles_of
from fairlap.scenarios.callables.answers.check import Answers
from fairlap.scenarios.callables.device_blocks import DeviceBlocks
from fairlap.scenarios.callables.idle_threads import cpu_of_others_s, wait_until_quiet
from fairlap.scenarios.callables.sample_sizes import even_calls
from fairlap.scenarios.regime import Regime
from fairlap.verdict.carry_over import CarryOver, carry_over

INTERRUPTED = "interrupted"
CARRY_OVER = "W_CARRY_OVER"
SHORTEST_TURN_S = 0.005  # a dozen rounds of calls of 100 us; a verdict takes at least six blocks
LONGEST_TURN_S = 0.05
_WARM_UP_CALLS = 1  # in a block: the callable before has just used the caches
_LONGEST_WAIT_S = 5.0
_MOST_ROUNDS = 1000
_MOST_WARM_UP_CALLS = 1_000_000
_LATE_WORK_SHARE = 0.1  # of the measured time; a pool of threads spins for less before it sleeps
_TURN_OVER_LATE_WORK = 2 / _LATE_WORK_SHARE

Done = Callable[[Any], object]
_Block = Callable[[Sequence[int], random.Random], bool]  # given the order; False when it was interrupted


WORKS_ON = "E_DEFERRED_WORK"
"""The code of a callable whose other threads work on after its calls."""


@dataclass
class Arm:
    """One callable and what has been measured of it."""

    name: str
    fn: Callable[..., object]
    done: Done | None
    calls_per_sample: int = 1
    quantity: str = "wall_ns"  # that its figures are of
    warnings: tuple[Notice, ...] = ()
    first_ns: float = 0.0  # a call, when it was warmed up
    medians_ns: list[float] = field(default_factory=list)
    cycles: list[float] = field(default_factory=list)  # of a GPU, for the blocks in which its clock was known
    measured_s: float = 0.0
    late_s: float = 0.0  # CPU time that other threads used after its calls had returned
    wrong: Notice | None = None  # what is wrong with its answers

    def add(self, measured: Measurement) -> None:
        """Keep the figures of a block."""
        self.medians_ns.append(measured.median_ns)
        if (cycles := cycles_of(measured)) is not None:
            self.cycles.append(cycles)

    @property
    def why_excluded(self) -> str:
        """Empty where it may be judged."""
        if self.wrong is not None:
            return self.wrong.text
        if self.done is not None or self.late_s <= _LATE_WORK_SHARE * self.measured_s:
            return ""
        return (
            f"no verdict on {self.name}: other threads worked for {quantity_text.seconds(self.late_s)} after its "
            f"calls had returned ({quantity_text.seconds(self.measured_s)} measured); if the calls are asynchronous, "
            "pass a done= that waits for them; threads of a library that only spin are fewer with OMP_NUM_THREADS=1"
        )


class CarriedOver:
    """Record the rounds, and warn of callables that slow others down by running just before them."""

    def __init__(self, arms: Sequence[Arm], margin: float) -> None:
        self._arms, self._margin = arms, margin
        self._orders: list[Sequence[int]] = []
        self._shifts: list[np.ndarray] = []

    def record(self, order: Sequence[int], found: Rounds) -> None:
        reverse = found.is_reversed
        if reverse.any() and not reverse.all():
            log_ns = np.log(found.wall_ns)
            self._orders.append(order)
            self._shifts.append(np.median(log_ns[:, ~reverse], axis=1) - np.median(log_ns[:, reverse], axis=1))

    def warn(self) -> None:
        """Add the warnings to those of the callables that are affected."""
        if not self._orders:
            return
        names = [arm.name for arm in self._arms]
        for each in carry_over(names, self._orders, np.array(self._shifts), self._margin):
            arm = self._arms[names.index(each.affected)]
            arm.warnings = (*arm.warnings, Notice(CARRY_OVER, _text(each)))


def _text(found: CarryOver) -> str:
    affected, cause, ratio = found.affected, found.cause, quantity_text.times(found.ratio)
    others = "itself" if found.of_two else "the others"
    after = f"{affected} took {ratio} as long right after {cause} as right after {others}"
    if found.of_two:
        after += f", and their order changed both together by {quantity_text.times(found.excess)}"
    return f"{after}; measure each alone (alone=True, --alone) to compare"


class Turns:
    """``seconds`` is the time of each callable in a block; unless fixed, it grows with what threads do after a call.

    The callables of a block take turns of one sample each, in rounds, so that what the machine does hits all alike.
    Those on a stream, and those after whose calls other threads go on, run one after the other, and so do all that are
    to run ``alone``. In rounds, an effect of who ran just before is a warning where it exceeds the ``margin``.

    Blocks of callables on a GPU are left out, for all of them, by the rules of ``DeviceBlocks``.
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        options: Mapping[str, Any],
        seconds: float,
        *,
        fixed: bool,
        warm_up_s: float,
        answers: Answers,
        margin: float,
        alone: bool = False,
        clocks: SampleClocks | None = None,
        regime: Regime | None = None,
    ) -> None:
        self.on_device = DeviceBlocks(clocks)
        self.arms = arms
        self._regime = regime or Regime("")
        self._answers = answers
        self.seconds = seconds
        self._warm_up_s = warm_up_s  # of each callable; infinite to go on until it is steady
        self._fixed = fixed
        self._alone = alone
        self._carried_over = CarriedOver(arms, margin)
        self._options = {name: value for name, value in options.items() if name != "calls_per_sample"}
        self._calls_per_sample = options.get("calls_per_sample", "auto")
        self._rounds: _Block | None = None

    def run(self, rng: random.Random, most_blocks: int, why_end: Callable[[], str]) -> str:
        """Warm up, then run block after block.

        Returns why it ended before the last block, or an empty text.
        """
        if not self.warm_up() or not self._load():
            return INTERRUPTED
        try:
            for _ in range(most_blocks):
                if why := why_end():
                    return why
                if not self.block(rng):
                    return INTERRUPTED
                if why := self.on_device.why_end:
                    return why
            return ""
        finally:
            self.warn_of_carry_over()
            for arm in self.arms:
                arm.warnings = (*arm.warnings, *self.on_device.notices)

    def warm_up(self) -> bool:
        """Run each callable once, which also finds how many calls make a sample; return False when interrupted."""
        began_s = time.perf_counter()
        firsts: list[Measurement] = []
        for arm in self.arms:
            firsts.append(first := self._warmed_up(arm))
            if first.interrupted:
                return False
            arm.calls_per_sample = first.calls_per_sample
            arm.quantity = first.headline.name
            arm.first_ns = first.median_ns
            arm.warnings = first.warnings
        if "gate" not in self._options and not self.on_device.can_hold(
            {arm.name: firsts[at] for at, arm in enumerate(self.arms)}
        ):
            self._options["gate"] = "none"
            return self.warm_up()
        for arm, first in zip(self.arms, firsts, strict=True):
            if arm.done is None and self._options["stream"] is None and not self._answers.are_compared:
                on = self._answers.in_turn(self.arms.index(arm)).on[0]
                require_started(arm.fn, on.args, on.kwargs, first)
        if self._chooses_calls:
            even = even_calls([arm.calls_per_sample for arm in self.arms], [arm.first_ns for arm in self.arms])
            for arm, calls in zip(self.arms, even, strict=True):
                arm.calls_per_sample = calls
        late_s = max(arm.late_s for arm in self.arms)
        if not self._fixed:
            self.seconds = max(self.seconds, min(LONGEST_TURN_S, _TURN_OVER_LATE_WORK * late_s))
        for arm in self.arms:
            arm.measured_s = arm.late_s = 0.0
        self._rounds = None if late_s or self._alone else self._in_rounds(firsts)
        self._answers.took(time.perf_counter() - began_s)
        return True

    def _load(self) -> bool:
        """Load a GPU where that is its regime, with all callables in turn; return False when interrupted."""

        def in_turn() -> float | None:
            mhz = None
            for arm in self.arms:
                measured = self._timed(arm, 0, arm.calls_per_sample, LONGEST_TURN_S)
                if measured.interrupted:
                    raise KeyboardInterrupt
                mhz = self.on_device.mhz(measured)
            return mhz

        try:
            self._regime.load(in_turn)
        except KeyboardInterrupt:
            return False
        for arm in self.arms:
            arm.measured_s = arm.late_s = 0.0
            arm.warnings = (*arm.warnings, *self._regime.notices)
        return True

    def block(self, rng: random.Random) -> bool:
        """Run every callable once more, after the warm-up, in an order drawn here; return False when interrupted."""
        began_s = time.perf_counter()
        order = rng.sample(range(len(self.arms)), len(self.arms))
        if not (self._rounds(order, rng) if self._rounds else self._one_after_the_other(order)):
            return False
        self.take_accusations()
        self._answers.took(time.perf_counter() - began_s)
        return True

    def take_accusations(self) -> None:
        for arm in self.arms:
            arm.wrong = self._answers.wrong.get(arm.name)

    def warn_of_carry_over(self) -> None:
        """Warn, after the last block, of callables that are slower after one of the others."""
        self._carried_over.warn()

    def _warmed_up(self, arm: Arm) -> Measurement:
        """On a machine where calls are never steady, a warm-up until they are would use up the budget."""
        until_steady = math.isinf(self._warm_up_s)
        seconds = self.seconds if until_steady else self._warm_up_s
        found = self._timed(arm, "auto" if until_steady else 1, self._calls_per_sample, seconds)
        self.on_device.begin(found)
        return found

    @property
    def _chooses_calls(self) -> bool:
        return self._calls_per_sample == "auto" and self._options["stream"] is None

    def _one_after_the_other(self, order: Sequence[int]) -> bool:
        """Whether the block was not interrupted."""
        measured: dict[str, Measurement] = {}
        for place in order:
            arm = self.arms[place]
            warm_up_calls = self._calls_in_a_turn(arm) if self._alone else _WARM_UP_CALLS
            self._regime.before_turn()
            measurement = self._timed(arm, warm_up_calls, arm.calls_per_sample, self.seconds)
            if measurement.interrupted:
                return False
            measured[arm.name] = self.on_device.with_clocks(measurement)
        self._answers.check_between()
        if self.on_device.counts(measured):
            for arm in self.arms:
                arm.add(measured[arm.name])
        return True

    def _calls_in_a_turn(self, arm: Arm) -> int:
        return max(_WARM_UP_CALLS, min(int(self.seconds * 1e9 / max(arm.first_ns, 1.0)), _MOST_WARM_UP_CALLS))

    def _in_rounds(self, firsts: Sequence[Measurement]) -> _Block | None:
        """Make what measures a block in rounds; None where that cannot be."""
        options = {name: value for name, value in self._options.items() if name != "stream"}
        if self._options["stream"] is not None or not set(options) <= {"clock", "pause_gc"}:
            return None
        calls = CallsInTurns(**options)
        calls_per_sample = [arm.calls_per_sample for arm in self.arms]
        round_ns = sum(arm.first_ns * (1 + arm.calls_per_sample) for arm in self.arms)

        def block(order: Sequence[int], rng: random.Random) -> bool:
            count = max(1, min(int(self.seconds * len(self.arms) * 1e9 / max(round_ns, 1.0)), _MOST_ROUNDS))
            drawn = self._answers.drawn_for(count, order, rng)
            in_turn = [self._answers.in_turn(place) for place in range(len(self.arms))]
            cpu_of_others_before_s = cpu_of_others_s()
            found = calls.rounds(in_turn, count, order, calls_per_sample, drawn)
            late_s = wait_until_quiet(_LONGEST_WAIT_S, cpu_of_others_before_s)
            if found.raised is not None:
                name, first = self.arms[found.raised_by].name, firsts[found.raised_by]
                raise CallableRaised(f"{name} raised {described(found.raised)}", first) from found.raised
            if found.interrupted:
                return False
            self._carried_over.record(order, found)
            figures_ns = np.exp(verdict.block_figures(np.log(found.wall_ns)))
            self._answers.look_back([float(figure_ns) for figure_ns in figures_ns])
            for arm, figure_ns in zip(self.arms, figures_ns, strict=True):
                arm.medians_ns.append(float(figure_ns))
                arm.measured_s += found.elapsed_s
                arm.late_s += late_s  # it cannot be known whose
            return True

        return block

    def _timed(self, arm: Arm, warmup: Any, calls_per_sample: Any, seconds: float) -> Measurement:
        cpu_of_others_before_s = cpu_of_others_s()
        turn = self._answers.in_turn(self.arms.index(arm))
        on = turn.on[0]
        found = timed(
            turn.fn,
            args=on.args,
            kwargs=on.kwargs,
            done=arm.done,
            name=arm.name,
            warmup=warmup,
            calls_per_sample=calls_per_sample,
            seconds=seconds,
            **self._options,
        )
        arm.measured_s += found.elapsed_s
        arm.late_s += wait_until_quiet(_LONGEST_WAIT_S, cpu_of_others_before_s)
        return found

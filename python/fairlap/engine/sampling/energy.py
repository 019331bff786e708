"""Energy of work that can be repeated, to a bound, and of a machine at rest."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairlap.engine import _native
from fairlap.engine.arguments import number_of, positive_number, whole_number
from fairlap.engine.sampling.joules import Energy
from fairlap.engine.sampling.region_energy import (
    Rows,
    Unresolved,
    counter_around,
    energy_of_power,
    rows_of,
    steps_of,
)
from fairlap.engine.sampling.telemetry import Sampler, check_readings, require_in_order
from fairlap.errors import InvalidRequest, NotAvailable

_GAIN_SHARE = 0.05  # what sensors of boards are known to be off by, all readings of one alike
_TRIALS = 4
_FEWEST_SECONDS = 5.0  # a shorter one shows the sensor rather than the work
_FEWEST_TRIALS = 2
_MOST_TRIALS = 2**20
_LONGEST_STALE_NS = 2**62
_LONGEST_PHASE_S = 0.1  # one step of a device's counter, mostly


@dataclass(frozen=True)
class Trial:
    """The same work, done ``repeats`` times without a pause between two marks."""

    begin_ns: int
    end_ns: int
    repeats: int


@dataclass(frozen=True)
class RepeatedEnergy:
    """Joules of one repeat. The interval is made of the shares; None is unknown, for the reason given."""

    joules: float | None
    low_j: float | None
    high_j: float | None
    alignment_share: float | None
    spread_share: float | None
    disagreement_share: float | None
    gain_share: float
    seconds: float
    unresolved_because: str


@dataclass(frozen=True)
class TickedPower:
    """Between two ticks of a counter. Their energy is exact; what is uncertain is when they came."""

    watts: float
    uncertainty_share: float
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class IdlePower:
    """Watts while nothing ran, with their interval."""

    watts: float
    low_w: float
    high_w: float


def repeated_energy(
    sampler: Sampler,
    readings: _native.Readings,
    source: str,
    counter: str,
    trials: Sequence[Trial],
    *,
    power: str | None = None,
    gain_share: float = _GAIN_SHARE,
    stale_ns: int = 0,
) -> RepeatedEnergy:
    """From what a sampler read: mean power between ticks of a counter, times how long a repeat took.

    ``power`` is a field of the same source; its integral is held against the counter, and what they differ by
    widens the bound. At least five seconds in at least two trials, or the answer is unresolved.
    """
    source_number, counter_number, found = sampler.number_of(source, counter)
    if not found.counter:
        raise InvalidRequest(f"{counter} of {source} is not a counter of energy")
    check_readings(readings)
    for trial in trials:
        require_in_order(trial.begin_ns, trial.end_ns)
    return energy_of_repeats(
        trials,
        rows_of(readings, source_number, counter_number),
        found.wraps_at,
        None if power is None else rows_of(readings, source_number, sampler.number_of(source, power)[1]),
        gain_share=number_of("gain_share", gain_share),
        stale_ns=whole_number("stale_ns", stale_ns, least=0, most=_LONGEST_STALE_NS),
    )


def energy_of_repeats(
    trials: Sequence[Trial], counter: Rows, wraps_at: float, power: Rows | None, *, gain_share: float, stale_ns: int
) -> RepeatedEnergy:
    """From the readings of a counter and, if there is one to hold it against, of power."""
    seconds = 0.0
    joules: list[float] = []
    alignments: list[float] = []
    disagreements: list[float] = []  # NaN where there is nothing to hold the counter against
    try:
        for trial in trials:
            trial_s = (trial.end_ns - trial.begin_ns) * 1e-9
            seconds += trial_s
            ticked = power_between_ticks(counter, trial.begin_ns, trial.end_ns, wraps_at)
            if trial.repeats < 1:
                raise Unresolved("a trial repeated nothing")
            joules.append(ticked.watts * trial_s / trial.repeats)
            alignments.append(ticked.uncertainty_share)
            disagreements.append(_disagreement(ticked, power, gain_share, stale_ns))
        if seconds < _FEWEST_SECONDS:
            raise Unresolved(f"the work was repeated for less than {_FEWEST_SECONDS:g} s")
        if len(trials) < _FEWEST_TRIALS:
            raise Unresolved("one trial does not show how trials differ")
    except Unresolved as unresolved:
        return RepeatedEnergy(None, None, None, None, None, None, gain_share, seconds, str(unresolved))
    mean_j = float(np.mean(joules))
    alignment, spread, disagreement = max(alignments), _spread_of(joules), float(np.max(disagreements))
    # The sum, not the root of squares: the parts are bounds of different kinds, and may have a common cause.
    share = alignment + spread + (0.0 if math.isnan(disagreement) else disagreement) + gain_share
    return RepeatedEnergy(
        joules=mean_j,
        low_j=mean_j * max(0.0, 1 - share),
        high_j=mean_j * (1 + share),
        alignment_share=alignment,
        spread_share=spread,
        disagreement_share=None if math.isnan(disagreement) else disagreement,
        gain_share=gain_share,
        seconds=seconds,
        unresolved_because="",
    )


def power_between_ticks(counter: Rows, begin_ns: int, end_ns: int, wraps_at: float) -> TickedPower:
    """Find the mean power between the first and the last tick of a counter inside a region."""
    steps = steps_of(*counter_around(counter, begin_ns, end_ns, wraps_at))
    inside = np.flatnonzero((steps.after_ns >= begin_ns) & (steps.seen_ns <= end_ns))
    if len(inside) < 2:
        raise Unresolved("the counter ticked fewer than twice inside the region")
    ends = inside[[0, -1]]
    first_ns, last_ns = (int(at_ns) for at_ns in steps.middle_ns[ends])
    seconds = (last_ns - first_ns) * 1e-9
    late_s = float((steps.seen_ns - steps.after_ns)[ends].sum()) / 2 * 1e-9
    return TickedPower(
        watts=float(np.diff(steps.joules[ends])[0]) / seconds,
        # Of 1 / (seconds - late), the wider side.
        uncertainty_share=late_s / (seconds - late_s) if late_s < seconds else math.inf,
        begin_ns=first_ns,
        end_ns=last_ns,
    )


def run_trials(
    work: Callable[[], object],
    sampler: Sampler,
    *,
    seconds: float = _FEWEST_SECONDS,
    trials: int = _TRIALS,
    seed: int = 1,
) -> list[Trial]:
    """Repeat the work in trials of ``seconds`` together, each begun at another phase of the sensors.

    The sampler has to run. ``work`` must be done when it returns: of work on a device, wait for its end.
    """
    if not sampler.running:
        raise NotAvailable("a sampler that does not run reads nothing; enter it with `with` first")
    trials = whole_number("trials", trials, least=1, most=_MOST_TRIALS)
    seconds = positive_number("seconds", seconds)
    phases = random.Random(seed)
    done = []
    time.sleep(_LONGEST_PHASE_S)  # so that a tick before the first trial is seen
    for _ in range(trials):
        time.sleep(phases.uniform(0.0, _LONGEST_PHASE_S))
        repeats = 0
        begin_ns = sampler.mark(0)
        end_ns = begin_ns
        while end_ns - begin_ns < seconds / trials * 1e9:
            work()
            repeats += 1
            end_ns = sampler.mark(0)
        done.append(Trial(begin_ns, end_ns, repeats))
    time.sleep(_LONGEST_PHASE_S)  # and one after the last
    return done


def idle_power(energy: Energy, begin_ns: int, end_ns: int) -> IdlePower:
    """Of a stretch in which nothing ran, whose energy is known. Given apart: it is never taken off unasked."""
    require_in_order(begin_ns, end_ns)
    seconds = (end_ns - begin_ns) / 1e9
    if energy.joules is None or energy.low_j is None or energy.high_j is None:
        raise NotAvailable(f"idle power is unknown: {energy.unresolved_because}")
    if not seconds:
        raise InvalidRequest("idle power needs a region that has a length; begin_ns and end_ns are the same")
    return IdlePower(energy.joules / seconds, energy.low_j / seconds, energy.high_j / seconds)


def above_idle(energy: Energy, begin_ns: int, end_ns: int, idle: IdlePower) -> Energy:
    """Subtract the energy that the machine at rest would have drawn in the region."""
    require_in_order(begin_ns, end_ns)
    if energy.joules is None or energy.low_j is None or energy.high_j is None:
        return energy
    seconds = (end_ns - begin_ns) / 1e9
    return replace(
        energy,
        joules=energy.joules - idle.watts * seconds,
        low_j=energy.low_j - idle.high_w * seconds,
        high_j=energy.high_j - idle.low_w * seconds,
    )


def _disagreement(ticked: TickedPower, power: Rows | None, gain_share: float, stale_ns: int) -> float:
    """Compare the energy between two ticks with the integral of power, as a share; NaN without one."""
    if power is None:
        return math.nan
    integral = energy_of_power(power, ticked.begin_ns, ticked.end_ns, gain_share=gain_share, stale_ns=stale_ns)
    counted_j = ticked.watts * (ticked.end_ns - ticked.begin_ns) * 1e-9
    return math.nan if integral.joules is None else abs(counted_j - integral.joules) / counted_j


def _spread_of(values: list[float]) -> float:
    """Half the width of the mean's interval of 95 %, as a share of the mean."""
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    freedom = len(values) - 1
    return float(stdtrit(freedom, 0.975) * np.std(values, ddof=1) / math.sqrt(len(values)) / np.mean(values))

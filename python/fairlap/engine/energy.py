"""Energy of work that can be repeated, to a bound, and of a machine at rest."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fairlap.engine import _native
from fairlap.engine.arguments import number_of, positive_number, whole_number
from fairlap.engine.field_calibration import known_or_none
from fairlap.engine.telemetry import Energy, Sampler, check_readings, require_in_order
from fairlap.errors import InvalidRequest, NotAvailable

_GAIN_SHARE = 0.05  # what sensors of boards are known to be off by, all readings of one alike
_TRIALS = 4
_FEWEST_SECONDS = 5.0
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
    energy = _native.repeated_energy(
        readings,
        source_number,
        counter_number,
        wraps_at=found.wraps_at,
        power=None if power is None else sampler.number_of(source, power)[1],
        trials=[(trial.begin_ns, trial.end_ns, trial.repeats) for trial in trials],
        gain_share=number_of("gain_share", gain_share),
        stale_ns=whole_number("stale_ns", stale_ns, least=0, most=_LONGEST_STALE_NS),
    )
    return RepeatedEnergy(
        joules=known_or_none(energy.joules),
        low_j=known_or_none(energy.low_j),
        high_j=known_or_none(energy.high_j),
        alignment_share=known_or_none(energy.alignment_share),
        spread_share=known_or_none(energy.spread_share),
        disagreement_share=known_or_none(energy.disagreement_share),
        gain_share=energy.gain_share,
        seconds=energy.seconds,
        unresolved_because=energy.unresolved_because,
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

"""What one process's turns showed, on its result: percentiles, counters, warnings; and the samples to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairlap import verdict
from fairlap.launch.worker_process import Samples
from fairlap.meters import disturbances
from fairlap.meters.energy import Sensed
from fairlap.request.fields.device_conditions import CACHE
from fairlap.scenarios.calls.latency_messages import Measured, MeasuredQuantity
from fairlap.scenarios.process_result import ProcessResult, Timing

_PER_CALL = {
    "process_minor_faults": "page_faults",
    "process_major_faults": "major_faults",
    "process_voluntary_switches": "voluntary_switches",
    "process_involuntary_switches": "involuntary_switches",
    "migrations": "migrations",
    "thread_cpu_ns": "thread_cpu_ns",
    "process_cpu_ns": "process_cpu_ns",
}

_OF_A_SHORT_TURN = ("W_FEW_SAMPLES",)  # of which there are enough in all rounds together


@dataclass(frozen=True)
class Turn:
    measured: Measured
    samples_ns: Samples

    @property
    def headline_ns(self) -> np.ndarray:
        return self.samples_ns[self.measured.quantities[0].name]

    @property
    def calls_ns(self) -> np.ndarray:
        """By the clock; see ``ProcessResult.calls``."""
        return self.samples_ns.get("wall_ns", self.headline_ns)


def record_one_turn(result: ProcessResult, turn: Turn) -> Samples:
    """Record a process that had the machine for itself, in which what settles late is not steady yet."""
    measured = turn.measured
    _record_counts(result, [turn])
    result.warnings = [*result.warnings, *measured.warnings]  # after those of the model
    result.feeding, result.energy = measured.feeding, measured.energy
    result.untimed, result.device_conditions = measured.absent, measured.device_conditions
    if measured.warm_up is not None:
        result.phases_s["warm_up"] = measured.warm_up.elapsed_s
    for quantity in measured.quantities:
        result.timings[quantity.name] = _timing(turn.samples_ns[quantity.name], measured, quantity, result)
    return turn.samples_ns


def record_rounds(result: ProcessResult, turns: Sequence[Turn]) -> Samples:
    """Record the rounds: the first turn was the warm-up; every other one is a round, and all its calls count."""
    rounds = turns[1:]
    last = rounds[-1].measured
    _record_counts(result, rounds)
    warm_up = turns[0].measured
    if warm_up.warm_up is not None:
        result.phases_s["warm_up"] = warm_up.warm_up.elapsed_s + warm_up.elapsed_s
    warnings = [warning for turn in rounds for warning in turn.measured.warnings]
    first_of_each = {warning.code: warning for warning in reversed(warnings)}
    lasting = [warning for code, warning in first_of_each.items() if code not in _OF_A_SHORT_TURN]
    result.warnings = [*result.warnings, *lasting]
    result.round_samples = [len(turn.headline_ns) for turn in rounds]
    result.rounds_ns = [float(np.nanmedian(turn.headline_ns)) for turn in rounds]
    together = {
        quantity.name: np.concatenate([turn.samples_ns[quantity.name] for turn in rounds])
        for quantity in last.quantities
    }
    for quantity in last.quantities:
        result.timings[quantity.name] = _timing(together[quantity.name], last, quantity, result)
    return together


def _record_counts(result: ProcessResult, turns: Sequence[Turn]) -> None:
    first = turns[0].measured
    samples = sum(len(turn.headline_ns) for turn in turns)
    calls = max(1, samples * first.calls_per_sample)
    counts: Counter[str] = Counter()
    for turn in turns:
        counts.update(turn.measured.counts)
    result.per_call = {name: counts[key] / calls for key, name in _PER_CALL.items() if key in first.counts}
    measured_s = sum(float(np.nansum(turn.calls_ns)) for turn in turns) * first.calls_per_sample / 1e9
    result.phases_s["measured"] = measured_s
    if measured_s > 0 and "process_cpu_ns" in first.counts:
        result.busy_cores = counts["process_cpu_ns"] / 1e9 / measured_s
    if measured_s > 0 and "process_involuntary_switches" in first.counts:
        result.machine[disturbances.INVOLUNTARY] = counts["process_involuntary_switches"] / measured_s


def _timing(samples_ns: np.ndarray, measured: Measured, quantity: MeasuredQuantity, result: ProcessResult) -> Timing:
    return timing_of(
        samples_ns,
        in_rounds=bool(result.rounds_ns),
        calls_per_sample=measured.calls_per_sample,
        method=quantity.method,
        resolution_ns=quantity.resolution_ns,
        gate=quantity.gate,
        sm_mhz=quantity.sm_mhz,
        whose=result.contestant,
    )


def timing_of(
    samples_ns: np.ndarray,
    *,
    in_rounds: bool,
    calls_per_sample: int,
    method: str,
    resolution_ns: float,
    whose: str,
    gate: str = "",
    sm_mhz: float | None = None,
) -> Timing:
    """Summarize all samples of a process by one quantity, as they are stored.

    In rounds all of them count; in one turn those from which it was steady.
    """
    samples = samples_ns[~np.isnan(samples_ns)]
    steady = verdict.steady_state(samples, whose)
    if in_rounds:
        steady = verdict.SteadyState(steady.course, (), 0)
    p50, p90, p99 = (verdict.process_figure(samples, steady, quantile=q, whose=whose).value for q in (0.5, 0.9, 0.99))
    return Timing(
        p50_ns=p50,
        p90_ns=p90,
        p99_ns=p99,
        samples=len(samples),
        calls_per_sample=calls_per_sample,
        steady_from=steady.steady_from,
        course=steady.course.value,
        method=method,
        resolution_ns=resolution_ns,
        gate=gate,
        sm_mhz=sm_mhz,
    )


def medians_of_turns(headline_ns: np.ndarray, round_samples: Sequence[int]) -> list[float]:
    """From the stored samples of a process, one turn after the other."""
    ends = np.cumsum(round_samples)[:-1]
    return [float(np.nanmedian(turn)) for turn in np.split(headline_ns, ends)]


def record_energy(result: ProcessResult, sensed: Sensed) -> None:
    """Or why it is absent."""
    read = set() if result.energy is None else {each.sensor for each in result.energy.read}
    # A work of fewer ranks reads fewer GPUs than the race has.
    result.idle_power = tuple(each for each in sensed.idle if not read or each.sensor in read)
    if result.work_in == "other_server":  # which may be on another machine
        result.energy, result.energy_absent = None, result.elsewhere
    elif CACHE in result.device_conditions:
        result.energy, result.energy_absent = None, "its cache was flushed between calls, which takes energy too"
    elif result.energy is None:
        result.energy_absent = sensed.absent or "its worker read no sensor of power or energy"

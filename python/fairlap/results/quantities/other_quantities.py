"""Besides the headline, every quantity that has one value per process is compared in the same way.

Each is a family of its own, at the level of the run's last look; those that a gate requires share that level.
Quantities of a device are compared only where every contestant has them: how long a device worked for some says nothing
of what the others took.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from fairlap import verdict
from fairlap.meters.memory import INSTALLED
from fairlap.models.modes import MODES
from fairlap.race.counted_blocks import block_times_ns
from fairlap.race.equal_work.equal_gates import held_alike, held_unlike
from fairlap.request.work import Work
from fairlap.results.quantities.device_clocks import clocks_mhz, unless_cycles_disagree
from fairlap.scenarios.added import Quantity
from fairlap.scenarios.contract import quantities_of_scenarios
from fairlap.scenarios.process_result import Period, ProcessResult

P90 = verdict.Metric("latency p90", "ns")
P99 = verdict.Metric("latency p99", "ns")
DEVICE_SPAN = verdict.Metric("device span", "ns")
CONTEXT_SPAN = verdict.Metric("context span", "ns")
KERNEL_SUM = verdict.Metric("kernel sum", "ns")
_TIMED_AS = {DEVICE_SPAN: "device_span_ns", CONTEXT_SPAN: "context_span_ns", KERNEL_SUM: "kernel_sum_ns"}
QUANTITIES_OF_A_DEVICE = frozenset(_TIMED_AS)
TIME_TO_FIRST_INFERENCE = verdict.TIME_TO_FIRST_INFERENCE
FIRST_ANSWERS = {"inference": TIME_TO_FIRST_INFERENCE, "gradient": verdict.TIME_TO_FIRST_GRADIENT}
CPU_TIME = verdict.Metric("CPU time", "ns", is_speed=False)
PEAK_MEMORY = verdict.Metric("peak memory", "B", is_speed=False, given_key="memory_peak")
INSTALLED_SIZE = verdict.Metric("installed size", "B", is_speed=False, given_key="installed_size")
PAGE_FAULTS = verdict.Metric("page faults per call", "", is_speed=False, given_key="page_faults")
ENERGY = verdict.Metric("energy per item", "J", is_speed=False)
_OF_RUNS = frozenset({CPU_TIME, PEAK_MEMORY})  # shown of programs; of frameworks, rows have these figures
_FEWEST = 1.0
"""Fewer faults, allocations or bytes in a call count as one, since 0 has no ratio."""


@dataclass(frozen=True)
class QuantityComparisons:
    """One metric compared between all that have it."""

    metric: verdict.Metric
    comparisons: tuple[verdict.Comparison, ...]
    without: tuple[str, ...]  # contestants that lack this quantity
    why_not: str = ""  # all have it, and it is not compared
    is_shown: bool = False  # also where people read


def compare_other_quantities(
    work: Work,
    processes_by_contestant: Mapping[str, Sequence[ProcessResult]],
    headline: verdict.Metric,
    *,
    level: float = verdict.ERROR_RATE,
    required: Collection[str] = (),
    starved: Mapping[Period, str] = {},
) -> tuple[QuantityComparisons, ...]:
    """``processes_by_contestant`` has one process for each block, in the blocks' order.

    ``required`` has the keys of the quantities that share the level, and ``starved`` why no times of a period are
    compared.
    """
    found = []
    of_runs = any(process.work_in == "child" for own in processes_by_contestant.values() for process in own)
    asked = [each for each in quantities_of_scenarios() if _is_compared(each, headline, processes_by_contestant)]
    of_scenarios = [(each.metric, _values_of(each, processes_by_contestant), each.period) for each in asked]
    of_calls = [
        (metric, _values(read, work, processes_by_contestant), _PERIODS.get(metric))
        for metric, read in _METRICS.items()
    ]
    place = next(at for at, (metric, *_) in enumerate(of_calls) if metric == TIME_TO_FIRST_INFERENCE)
    for metric, values, period in [*of_calls[:place], *of_scenarios, *of_calls[place:]]:
        if metric == headline:
            continue
        if metric == verdict.LATENCY and headline != verdict.REPORTED_TIME:  # compared as the time of a step, or not
            continue
        if metric in QUANTITIES_OF_A_DEVICE and not any(each is not None for own in values.values() for each in own):
            continue  # the race was on a CPU
        metric = _on(work, metric)
        own_level = level / len(required) if metric.key in required else level
        is_shown = metric in QUANTITIES_OF_A_DEVICE or is_of_a_scenario(metric) or (of_runs and metric in _OF_RUNS)
        why_not = starved.get(period, "") if period is not None and metric.is_speed else ""
        compared = _compared(metric, values, work, processes_by_contestant, own_level, why_not)
        found.append(replace(compared, is_shown=is_shown))
    return tuple(found)


def _on(work: Work, metric: verdict.Metric) -> verdict.Metric:
    return FIRST_ANSWERS[MODES[work.mode].first_answer] if metric == TIME_TO_FIRST_INFERENCE else metric


def is_of_a_scenario(metric: verdict.Metric) -> bool:
    return any(each.metric == metric for each in quantities_of_scenarios())


def _is_compared(
    quantity: Quantity, headline: verdict.Metric, processes_by_contestant: Mapping[str, Sequence[ProcessResult]]
) -> bool:
    processes = (process for own in processes_by_contestant.values() for process in own)
    return quantity.headline != headline and any(map(quantity.is_of, processes))


Values = dict[str, list[float | None]]


def _values_of(quantity: Quantity, processes_by_contestant: Mapping[str, Sequence[ProcessResult]]) -> Values:
    """Leaving out blocks in which some lack it would favour those."""
    values: Values
    if quantity.of_rounds:
        values = {name: list(own) for name, own in block_times_ns(processes_by_contestant).items()}
    else:
        values = {name: list(map(quantity.read, own)) for name, own in processes_by_contestant.items()}
    return {name: own if None not in own else [None] * len(own) for name, own in values.items()}


def _values(
    read: Callable[[ProcessResult, Work], float | None],
    work: Work,
    processes_by_contestant: Mapping[str, Sequence[ProcessResult]],
) -> Values:
    """Read them; a figure of 0 has no ratio, and is as good as none."""
    return {name: [read(process, work) or None for process in own] for name, own in processes_by_contestant.items()}


def _compared(
    metric: verdict.Metric,
    values: dict[str, list[float | None]],
    work: Work,
    processes_by_contestant: Mapping[str, Sequence[ProcessResult]],
    level: float,
    why_not: str,
) -> QuantityComparisons:
    without = tuple(name for name, own in values.items() if all(each is None for each in own))
    if metric == DEVICE_SPAN and not without and not why_not:
        values, why_not = _held_alike(values, processes_by_contestant)
    have = {} if why_not else _in_common_blocks({name: own for name, own in values.items() if name not in without})
    comparisons: tuple[verdict.Comparison, ...] = ()
    enough = len(have) > 1 and (metric not in QUANTITIES_OF_A_DEVICE or not without)
    if enough and min(map(len, have.values())) > 1:
        figures = {name: verdict.Figures(metric.name, own) for name, own in have.items()}
        table = verdict.block_table(figures, metric=metric, workload=work.id)
        comparisons = verdict.judge([table], alpha=level)
        if metric in QUANTITIES_OF_A_DEVICE:
            mhz = clocks_mhz(_TIMED_AS[metric], values, processes_by_contestant)
            comparisons = unless_cycles_disagree(comparisons, have, mhz, metric, level)
    return QuantityComparisons(metric, comparisons, without, why_not)


def _held_alike(
    values: Mapping[str, Sequence[float | None]], processes_by_contestant: Mapping[str, Sequence[ProcessResult]]
) -> tuple[dict[str, list[float | None]], str]:
    """Only the blocks in which all were held by the same gate; and who was not, where fewer than two are left."""
    blocks = list(zip(*processes_by_contestant.values(), strict=True))
    alike = [held_alike(block, "device_span_ns") for block in blocks]
    kept = {name: [v if same else None for v, same in zip(own, alike, strict=True)] for name, own in values.items()}
    if sum(alike) > 1 or all(alike):
        return kept, ""
    who = held_unlike(dict(zip(values, blocks[alike.index(False)], strict=True)), "device_span_ns")
    return kept, f"launch gaps are in some only ({who})"


def _in_common_blocks(values: Mapping[str, Sequence[float | None]]) -> dict[str, list[float]]:
    """Of the blocks in which each of these has the quantity: how long a start takes is known where it started alone."""
    whole = [block for block in zip(*values.values(), strict=True) if None not in block]
    return {name: [block[place] for block in whole] for place, name in enumerate(values)}


def metrics_of_processes(work: Work) -> dict[str, verdict.Metric]:
    """Collect what can be read of one process without the others of its block, by key."""
    return {metric.key: metric for metric in (_on(work, each) for each in _METRICS)}


def core_quantity_keys() -> list[str]:
    """List those that no scenario adds."""
    return list(dict.fromkeys(each.key for each in [*_METRICS, *FIRST_ANSWERS.values()]))


def quantity_keys() -> list[str]:
    """List every quantity that may be compared besides the headline."""
    return list(dict.fromkeys([*core_quantity_keys(), *(each.metric.key for each in quantities_of_scenarios())]))


def period_of(metric: verdict.Metric) -> Period | None:
    """Find when a speed was measured that others slow down; None for what they do not."""
    return _PERIODS.get(metric) if metric.is_speed else None


def figure_of(metric: verdict.Metric, process: ProcessResult, work: Work) -> float | None:
    """Read the figure of one process that it is compared by."""
    return _METRICS[TIME_TO_FIRST_INFERENCE if metric in FIRST_ANSWERS.values() else metric](process, work)


def _latency(process: ProcessResult, work: Work) -> float | None:
    return process.calls.p50_ns


def _p90(process: ProcessResult, work: Work) -> float | None:
    return process.calls.p90_ns


def _p99(process: ProcessResult, work: Work) -> float | None:
    return process.calls.p99_ns


def _throughput(process: ProcessResult, work: Work) -> float | None:
    return process.items_per_s(work.batch)


def _first(process: ProcessResult, work: Work) -> float | None:
    seconds = process.time_to_first_s()
    return None if seconds is None else seconds * 1e9


def _compiling(process: ProcessResult, work: Work) -> float | None:
    seconds = process.compile_s()
    return None if seconds is None else seconds * 1e9


def _cpu_time(process: ProcessResult, work: Work) -> float | None:
    return process.cpu_time_ns


def _peak_memory(process: ProcessResult, work: Work) -> float | None:
    peak = process.memory.bytes.get("peak")
    return None if peak is None else float(peak)


def _installed(process: ProcessResult, work: Work) -> float | None:
    size = process.memory.bytes.get(INSTALLED)
    return None if size is None else float(size)


def _page_faults(process: ProcessResult, work: Work) -> float | None:
    faults = None if process.elsewhere else process.per_call.get("page_faults")
    return None if faults is None else max(faults, _FEWEST)


def _allocations(process: ProcessResult, work: Work) -> float | None:
    return None if process.allocations is None else max(process.allocations.number, _FEWEST)


def _allocated(process: ProcessResult, work: Work) -> float | None:
    return None if process.allocations is None else max(process.allocations.bytes, _FEWEST)


def _energy(process: ProcessResult, work: Work) -> float | None:
    """By all sensors together, as rows have it; of ranks on other hosts nothing is known."""
    if process.energy is None or not process.energy.calls or (work.scale is not None and work.scale.hosts):
        return None
    joules = [each.joules for each in process.energy.read]
    known = [each for each in joules if each is not None]
    return sum(known) / (process.energy.calls * work.batch) if known and len(known) == len(joules) else None


def _device_span(process: ProcessResult, work: Work) -> float | None:
    return _median_of(process, "device_span_ns")


def _context_span(process: ProcessResult, work: Work) -> float | None:
    return _median_of(process, "context_span_ns")


def _kernel_sum(process: ProcessResult, work: Work) -> float | None:
    return _median_of(process, "kernel_sum_ns")


def _median_of(process: ProcessResult, quantity: str) -> float | None:
    """None where it is the headline, which has its own comparison."""
    timing = process.timings.get(quantity)
    return None if timing is None or process.headline_quantity == quantity else timing.p50_ns


_METRICS: dict[verdict.Metric, Callable[[ProcessResult, Work], float | None]] = {
    verdict.LATENCY: _latency,
    P90: _p90,
    P99: _p99,
    verdict.THROUGHPUT: _throughput,
    DEVICE_SPAN: _device_span,
    CONTEXT_SPAN: _context_span,
    KERNEL_SUM: _kernel_sum,
    TIME_TO_FIRST_INFERENCE: _first,
    verdict.COMPILE_TIME: _compiling,
    CPU_TIME: _cpu_time,
    PEAK_MEMORY: _peak_memory,
    INSTALLED_SIZE: _installed,
    PAGE_FAULTS: _page_faults,
    verdict.ALLOCATIONS: _allocations,
    verdict.ALLOCATED: _allocated,
    ENERGY: _energy,
}

_PERIODS: dict[verdict.Metric, Period] = dict.fromkeys(
    (verdict.LATENCY, P90, P99, verdict.THROUGHPUT, DEVICE_SPAN, CONTEXT_SPAN, KERNEL_SUM), "turns"
)
"""In which those were measured that others slow down. Of the start of a process nothing is read."""

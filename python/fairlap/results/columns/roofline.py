"""What bounds a call: arithmetic, memory traffic, or the overhead of calling the framework.

Each of the three has a time below which the call cannot get: its operations at the measured peak; the bytes that must
move at the measured bandwidth of the memory that holds them (Williams, Waterman and Patterson, 2009); and a call of
the same framework with next to nothing to compute. The longest of the three bounds the call, if it explains enough of
the time. They differ by orders of magnitude more often than not, so a noisy machine seldom changes which one it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

from fairlap import quantity_text
from fairlap.machine.hardware.instructions import measured_name
from fairlap.machine.hardware.roofs import LEVELS, Roofs
from fairlap.models.call_cost import CallCost
from fairlap.race.run import Run
from fairlap.request.work import Precision, Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import Cell, absence_reason, cell_or
from fairlap.results.work_result import ContestantResult

Bound = Literal["compute-bound", "memory-bound", "overhead-bound"]

NUMBER_TYPES: Mapping[Precision, str] = {
    "bf16": "bf16", "autocast": "bf16", "int8": "int8", "fp16": "fp16", "tf32": "tf32", "fp8": "fp8",
}  # fmt: skip
PLAIN = "fp32"  # what a CPU computes in where it has no instructions for the type

FAR_BELOW = 0.1
"""Of a call: where the nearer roof explains less than this, it says nothing about what takes the time."""

LEAST_OVERHEAD = 0.5
"""Of a call: what an empty one takes at least where the overhead is said to bound it."""

MOST_OVERHEAD = 1.5
"""Of a call: an empty one that takes longer was timed under another load, and says nothing."""

_NS_PER_S = 1e9


@dataclass(frozen=True)
class LeastTimes:
    """Below which a call cannot get, in nanoseconds."""

    compute_ns: float
    memory_ns: float
    overhead_ns: float | None  # None where it was not measured
    number_type: str
    level: str
    operators: int

    @property
    def roofs_ns(self) -> float:
        return max(self.compute_ns, self.memory_ns)

    def bound(self, call_ns: float) -> Bound | None:
        """Choose the longest of the three; None where it explains too little of the time."""
        if self.overhead_ns is not None and self.overhead_ns >= self.roofs_ns:
            explains = LEAST_OVERHEAD * call_ns <= self.overhead_ns <= MOST_OVERHEAD * call_ns
            return "overhead-bound" if explains else None
        if self.roofs_ns < FAR_BELOW * call_ns:
            return None
        return "compute-bound" if self.compute_ns >= self.memory_ns else "memory-bound"

    def why_no_bound(self, call_ns: float, no_overhead: str) -> str:
        nearer = self.number_type if self.compute_ns >= self.memory_ns else self.level
        of_roof = f"at the {nearer} roof it would take {quantity_text.share(self.roofs_ns / call_ns)} of its time"
        if self.overhead_ns is None:
            return f"{of_roof}, and {no_overhead}"
        if self.overhead_ns > MOST_OVERHEAD * call_ns:
            took = quantity_text.duration(self.overhead_ns)
            return f"{of_roof}, and an empty call took {took}, under another load than this one"
        return f"{of_roof}, and an empty call takes {quantity_text.share(self.overhead_ns / call_ns)} of it"

    def evidence(self, call_ns: float) -> str:
        call, compute, memory = map(quantity_text.duration, (call_ns, self.compute_ns, self.memory_ns))
        arithmetic = (
            f"at the {self.number_type} roof its operations would take {compute}"
            if self.compute_ns
            else "it has no arithmetic"
        )
        far = ", so it is far below the roofs" if self.roofs_ns < FAR_BELOW * call_ns else ""
        at_roofs = f"{arithmetic}, at the {self.level} roof its bytes {memory}{far}"
        return f"a call takes {call}; {at_roofs}; {self._overhead_text()}"

    def _overhead_text(self) -> str:
        if self.overhead_ns is None:
            return "an empty call was not measured"
        text = f"an empty call takes {quantity_text.duration(self.overhead_ns)}"
        if self.operators == 1:
            return text
        return f"{text}, and the model has {self.operators:,} operators or more"


def least_times(
    cost: CallCost, operations: float, roofs: Roofs, precision: Precision, overhead_ns: float | None, call_ns: float
) -> LeastTimes:
    wanted = NUMBER_TYPES.get(precision, PLAIN)
    number_type = wanted if wanted in roofs.operations_per_s else PLAIN
    level, memory_ns = roofs.time_of_bytes(cost.moved_bytes, cost.working_set_bytes, call_ns)
    compute_ns = operations / roofs.operations_per_s[number_type].value * _NS_PER_S
    return LeastTimes(compute_ns, memory_ns, overhead_ns, number_type, level, cost.operators)


def roofs_under(run: Run, work: Work) -> Roofs | None:
    """Those of the threads that a process of this work has; none where ranks share its calls."""
    if run.roofs is None or (work.scale is not None and work.scale.ranks > 1):
        return None
    return run.roofs.of_threads(run.plan.threads_of(work))


def roofline_of(
    result: ContestantResult,
    roofs: Roofs | None,
    precision: Precision,
    device: str,
    latency: Estimate | None,
    *,
    ranks: int = 1,
) -> dict[str, Cell]:
    cost = next((process.call_cost for process in result.processes if process.call_cost), None)
    unknown = absence_reason(result) or "it is unknown what a call computes"
    if cost is None:
        return dict.fromkeys((*_AMOUNTS, *_AGAINST_ROOFS), Cell(None, unknown)) | {"overhead_ns": _overhead(result)}
    found = _amounts(cost, latency, absence_reason(result))
    why = (
        absence_reason(result)
        or next((process.elsewhere for process in result.finished if process.work_in == "other_server"), "")
        or ("" if ranks == 1 else "ranks share its calls, and roofs are of one process")
        or ("" if _are_complete(roofs) else "the roofs of the machine were not measured")
        or _no_peak(roofs, precision, device)
        or ("" if cost.operations is not None else cost.counted)
    )
    if why or latency is None or roofs is None or cost.operations is None:
        return found | dict.fromkeys(_AGAINST_ROOFS, Cell(None, why)) | {"overhead_ns": _overhead(result)}
    overhead = _overhead(result)
    times = least_times(cost, cost.operations, roofs, precision, overhead.value, latency.value)
    counted = f" (operations: {cost.counted})" if cost.counted else ""
    return found | {
        "overhead_ns": overhead,
        "roof": Cell(times.number_type if times.compute_ns >= times.memory_ns else times.level),
        "roof_instructions": _instructions_of(times, roofs),
        "roof_share": Cell(times.roofs_ns / latency.value),
        "bound": cell_or(times.bound(latency.value), times.why_no_bound(latency.value, overhead.absent)),
        "bound_evidence": Cell(times.evidence(latency.value) + counted),
    }


def _instructions_of(times: LeastTimes, roofs: Roofs) -> Cell:
    if times.compute_ns < times.memory_ns:
        return Cell(None, "the nearer roof is that of memory")
    found = measured_name(roofs.instructions.get(times.number_type, ""))
    return cell_or(found or None, "the roofs do not say with which instructions they were measured")


def _no_peak(roofs: Roofs | None, precision: Precision, device: str) -> str:
    """Explain why there is no peak for this precision.

    A CPU without instructions for a type computes in fp32; a GPU that has no roof for it has units that were not
    measured.
    """
    wanted = NUMBER_TYPES.get(precision, PLAIN)
    if device == "cpu" or roofs is None or wanted in roofs.operations_per_s:
        return ""
    return f"the roof of {wanted} was not measured: {roofs.absent.get(wanted, 'it is not known why')}"


def _are_complete(roofs: Roofs | None) -> bool:
    return roofs is not None and PLAIN in roofs.operations_per_s and not roofs.bytes_per_s.keys().isdisjoint(LEVELS)


_AMOUNTS = ("operations_per_call", "bytes_per_call", "operations_per_byte", "gflop_per_s")
_AGAINST_ROOFS = ("roof", "roof_instructions", "roof_share", "bound", "bound_evidence")


def _amounts(cost: CallCost, latency: Estimate | None, no_latency: str) -> dict[str, Cell]:
    operations = cost.operations
    if operations is None:
        uncounted = Cell(None, cost.counted)
        return dict.fromkeys(_AMOUNTS, uncounted) | {"bytes_per_call": Cell(cost.moved_bytes)}

    def rate(call_ns: float | None) -> float | None:
        return None if call_ns is None else operations / call_ns

    return {
        "operations_per_call": Cell(operations),
        "bytes_per_call": Cell(cost.moved_bytes),
        "operations_per_byte": Cell(operations / cost.moved_bytes),
        "gflop_per_s": Cell(None, no_latency)
        if latency is None
        else Cell(Estimate(operations / latency.value, rate(latency.high), rate(latency.low))),
    }


def _overhead(result: ContestantResult) -> Cell:
    """Under other conditions than those in which it was measured, there is none."""
    known = [process.overhead_ns for process in result.processes if process.overhead_ns is not None]
    why = next((process.overhead_absent for process in result.processes if process.overhead_absent), "")
    return cell_or(
        median(known) if known else None, why or absence_reason(result) or "the overhead of a call was not measured"
    )

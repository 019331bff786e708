"""The columns of a row that tell of feeding.

Shares of the time are those of one process, the one in the middle by the share that it waited, so that what stands
beside each other adds up to the whole. Medians of the parts would not, and a mean would be drawn off by one process
that the machine held up. Of two in the middle it is the one that waited longer.

What feeding cost one process: items a second with all that is around them, and what its time went into.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_high

import numpy as np

from fairlap.data.pipeline import WAITED
from fairlap.race.process_result import ProcessResult
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.row import Estimate
from fairlap.results.work_result import ContestantResult
from fairlap.verdict.signed_rank import sign_interval

_NS_PER_S = 1e9
_CAUSES = {"source_ns": "reading", "staging_ns": "copying", "no_slot_ns": "no free slot"}
WORK, NO_CAUSE_TOLD = "work", "waited"


def items_per_s(process: ProcessResult) -> float | None:
    return process.feeding["items"] / process.feeding["wall_ns"] * _NS_PER_S if process.feeding.get("wall_ns") else None


def waited_share(process: ProcessResult) -> float | None:
    return process.feeding[WAITED] / process.feeding["wall_ns"] if process.feeding.get("wall_ns") else None


def time_shares(process: ProcessResult) -> dict[str, float]:
    """Shares of the wall time by what it went into: work, and what was waited for. A pipeline that does not tell what
    it waited for has waited, and no more is known. Nothing when the process was not fed."""
    fed = process.feeding
    if not fed.get("wall_ns"):
        return {}
    causes = {name: key for key, name in _CAUSES.items() if key in fed} or {NO_CAUSE_TOLD: WAITED}
    return {name: fed[key] / fed["wall_ns"] for name, key in {WORK: "work_ns", **causes}.items()}


_ALPHA = 0.05


def feeding_of(result: ContestantResult) -> dict[str, Cell]:
    processes = result.finished
    why = absence_reason(result) or "nothing was fed; see --data"
    return {
        "pipeline_throughput_per_s": cell_or(estimate(processes, items_per_s), why),
        "waited_share": cell_or(_waited(_shares(processes)), why),
    }


def stall_shares_of(result: ContestantResult) -> dict[str, float]:
    """Empty where there is no share that was waited."""
    processes = result.finished
    shares = _shares(processes)
    return time_shares(processes[shares.index(median_high(shares))]) if shares else {}


def _shares(processes: Sequence[ProcessResult]) -> list[float]:
    """For each process the share that it waited; none when some were not fed."""
    shares = [waited_share(process) for process in processes]
    known = [share for share in shares if share is not None]
    return known if len(known) == len(shares) else []


def _waited(shares: Sequence[float]) -> Estimate | None:
    """A share may be zero, so there is no logarithm here; the sign test's interval is the same without."""
    if not shares:
        return None
    low, high = sign_interval(np.asarray(shares), _ALPHA)
    value = median_high(shares)
    return Estimate(value, low, high) if np.isfinite(high) else Estimate(value)

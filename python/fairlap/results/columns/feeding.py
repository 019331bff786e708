"""The columns of a row about feeding: items a second with all that is around them, and what the time went into.

Shares of the time are those of one process, the one in the middle by its share of waiting, so that they add up to the
whole. Medians of the parts would not, and one process that the machine held up would pull a mean away. Of two processes
in the middle it is the one that waited longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median_high

import numpy as np

from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.process_result import ProcessResult
from fairlap.verdict.exact_tests.signed_rank import sign_interval

_ALPHA = 0.05
_NS_PER_S = 1e9
_CAUSES = {"source_ns": "reading", "staging_ns": "copying", "no_slot_ns": "no free slot"}
WORK, UNKNOWN_CAUSE = "work", "waited"


def items_per_s(process: ProcessResult) -> float | None:
    fed = process.feeding
    return fed.items / fed.wall_ns * _NS_PER_S if fed is not None and fed.wall_ns else None


def waited_share(process: ProcessResult) -> float | None:
    fed = process.feeding
    return fed.waited_ns / fed.wall_ns if fed is not None and fed.wall_ns else None


def hidden_share(process: ProcessResult) -> float | None:
    fed = process.feeding
    return None if fed is None or fed.copies is None else fed.copies.hidden_share


def time_shares(process: ProcessResult) -> dict[str, float]:
    """Split the wall time into the shares of work and of waiting.

    There is a share for each cause of waiting where the pipeline knows it, else one for waiting as a whole. Empty when
    the process was not fed.
    """
    fed = process.feeding
    if fed is None or not fed.wall_ns:
        return {}
    causes = {name: getattr(fed, key) for key, name in _CAUSES.items() if getattr(fed, key) is not None}
    spent_ns = {WORK: fed.work_ns, **(causes or {UNKNOWN_CAUSE: fed.waited_ns})}
    return {name: each_ns / fed.wall_ns for name, each_ns in spent_ns.items()}


def feeding_of(result: ContestantResult) -> dict[str, Cell]:
    processes = result.finished
    why = absence_reason(result) or ("" if any(each.feeding for each in processes) else "nothing was fed; see --data")
    return {
        "pipeline_throughput_per_s": cell_or(estimate(processes, items_per_s), why),
        "waited_share": cell_or(_middle(_shares(processes, waited_share)), why),
        "copies_hidden_share": cell_or(_middle(_shares(processes, hidden_share)), why or _without_copies(processes)),
    }


def stall_shares_of(result: ContestantResult) -> dict[str, float]:
    """Empty when no process was fed."""
    processes = result.finished
    shares = _shares(processes, waited_share)
    return time_shares(processes[shares.index(median_high(shares))]) if shares else {}


def _without_copies(processes: Sequence[ProcessResult]) -> str:
    reasons = [each.feeding.copies.absent for each in processes if each.feeding and each.feeding.copies]
    return next(filter(None, reasons), "copies were not timed")


def _shares(processes: Sequence[ProcessResult], share_of: Callable[[ProcessResult], float | None]) -> list[float]:
    """Compute this share of each process; empty when it is not known of some."""
    shares = [share_of(process) for process in processes]
    known = [share for share in shares if share is not None]
    return known if len(known) == len(shares) else []


def _middle(shares: Sequence[float]) -> Estimate | None:
    """Estimate a share, which may be zero: no logarithm is taken, which the sign test's interval does not need."""
    if not shares:
        return None
    low, high = sign_interval(np.asarray(shares), _ALPHA)
    value = median_high(shares)
    return Estimate(value, low, high) if np.isfinite(high) else Estimate(value)

"""How much a lower precision costs: the growth of the error against fp32, and whether it is within the stated bound."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.race.plan import Plan
from fairlap.race.process_result import ProcessResult
from fairlap.request.work import Work

EXCEEDED = "E_MAX_DROP"


def error_drop(
    plan: Plan, work: Work, processes: Sequence[ProcessResult], everything: Sequence[ProcessResult]
) -> float | None:
    """How much larger the error of these processes of one contestant is than the smallest one in fp32 on the same
    work, of all processes of the run. None where nothing was compared, or fp32 is not raced."""
    own, exact = _worst_error(processes), fp32_error(plan, work, everything)
    return None if own is None or exact is None else max(0.0, own - exact)


def fp32_error(plan: Plan, work: Work, everything: Sequence[ProcessResult]) -> float | None:
    wanted = work.in_precision("fp32")
    errors = []
    for each in plan.works:
        for name in plan.contestants:
            if each.in_precision(name.precision) != wanted:
                continue
            own = [
                process
                for process in everything
                if (process.work, process.contestant) == (each.label, name.text) and process.finished
            ]
            errors.append(_worst_error(own))
    return min((error for error in errors if error is not None), default=None)


def exceeded(plan: Plan, drop: float | None) -> str:
    """Why a contestant with this drop is not ranked; empty where it qualifies."""
    if plan.max_drop is None or drop is None or drop <= plan.max_drop:
        return ""
    return (
        f"its error grew by {quantity_text.relative_error(drop)} against fp32, by more than the "
        f"{quantity_text.share(plan.max_drop)} of --max-drop"
    )


def _worst_error(processes: Sequence[ProcessResult]) -> float | None:
    """Of all answers that were checked; infinite where one was not finite."""
    return max((error.distance for process in processes for error in process.errors), default=None)

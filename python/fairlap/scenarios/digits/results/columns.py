"""What rows of a race of digits say of answers: they were measured, and may be wrong."""

from __future__ import annotations

from typing import Any

from fairlap.request.work import Work
from fairlap.results.scenario_side import ResultsSide
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.digits.scenario import is_of_digits, kept

MEASURED = "measured against the reference, whatever the error"


class DigitsColumns(ResultsSide):
    def fields(self, result: ContestantResult, work: Work) -> dict[str, Any]:
        if not is_of_digits(work.model):
            return {}
        return {"answers": MEASURED if any(kept(process) is not None for process in result.finished) else ""}

"""Figures that a scenario adds to the row."""

from __future__ import annotations

import math

from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import absence_reason, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.added import AddedFigure
from fairlap.scenarios.contract import Scenario


def figures_of(scenario: Scenario, result: ContestantResult) -> dict[str, Estimate]:
    found = {each.name: _estimate(each, result) for each in scenario.figures}
    return {name: value for name, value in found.items() if value is not None}


def _estimate(figure: AddedFigure, result: ContestantResult) -> Estimate | None:
    if figure.over is None:
        return estimate(result.finished, figure.read)
    values = [value for each in result.finished if (value := figure.read(each)) is not None]
    if not values or len(values) < len(result.finished):
        return None
    value, low, high = figure.over(values)
    return Estimate.bounded(value, low, high) if math.isfinite(value) else None


def absent_of(scenario: Scenario, result: ContestantResult) -> dict[str, str]:
    """Why, by name."""
    has, why = figures_of(scenario, result), absence_reason(result)
    return {each.name: why or each.absent for each in scenario.figures if each.name not in has}

"""Figures that a scenario of an installed package adds to the row."""

from __future__ import annotations

from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import absence_reason, estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.contract import Scenario


def figures_of(scenario: Scenario, result: ContestantResult) -> dict[str, Estimate]:
    found = {each.name: estimate(result.finished, each.read) for each in scenario.figures}
    return {name: value for name, value in found.items() if value is not None}


def absent_of(scenario: Scenario, result: ContestantResult) -> dict[str, str]:
    """Why, by name."""
    has, why = figures_of(scenario, result), absence_reason(result)
    return {each.name: why or each.absent for each in scenario.figures if each.name not in has}

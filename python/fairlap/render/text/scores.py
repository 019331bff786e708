"""Scores in words, for every output for people: the metrics of a task."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.results.row import Row


def scores_text(row: Row) -> list[str]:
    """Each metric with its interval, such as ``top1 0.762 (0.758-0.766)``."""
    found = []
    for name, score in row.scores.items():
        bounds = "" if score.low is None or score.high is None else f" ({_number(score.low)}-{_number(score.high)})"
        found.append(f"{name} {_number(score.value)}{bounds}")
    return found


def _number(score: float) -> str:
    return quantity_text.number(score, 4)

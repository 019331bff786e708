"""Scores in words, for every output for people: the metrics of a task, and training to a score."""

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


def learning_text(row: Row) -> str:
    """``97 % in 418 ms [401, 440], 220 steps, 5e-05 EUR``; empty where no score was asked for."""
    if row.target_score is None or row.reached_share is None:
        return ""
    target = f"{100 * row.target_score:.6g} %"
    if row.time_to_score_s is None or row.steps_to_score is None:
        return f"{target} not reached: {row.absent['time_to_score_s']}"
    took = quantity_text.quantity(row.time_to_score_s.value, "s", row.time_to_score_s.low, row.time_to_score_s.high)
    parts = [f"{target} in {took}", f"{row.steps_to_score:,.0f} steps"]
    if row.step_in_epochs_ns is not None:
        parts[-1] += f" of {quantity_text.duration(row.step_in_epochs_ns.value)}"
    if row.evaluation_to_score_s is not None:
        parts.append(f"{quantity_text.seconds(row.evaluation_to_score_s.value)} of it evaluation")
    if row.energy_to_score_j is not None:
        energy = row.energy_to_score_j
        parts.append(quantity_text.quantity(energy.value, "J", energy.low, energy.high))
    if row.cost_to_score is not None:
        parts.append(f"{quantity_text.number(row.cost_to_score.value)} {row.currency}")
    if row.reached_share < 1:
        parts.append(f"reached by {quantity_text.share(row.reached_share)} of the processes")
    return ", ".join(parts)

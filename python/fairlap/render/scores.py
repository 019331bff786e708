"""The metrics of a task in words, for every output for people."""

from __future__ import annotations

from fairlap.results.row import Row


def scores_text(row: Row) -> list[str]:
    """Each metric with its interval, such as ``top1 0.762 (0.758-0.766)``."""
    found = []
    for name, score in row.scores.items():
        bounds = "" if score.low is None or score.high is None else f" ({score.low:.4g}-{score.high:.4g})"
        found.append(f"{name} {score.value:.4g}{bounds}")
    return found

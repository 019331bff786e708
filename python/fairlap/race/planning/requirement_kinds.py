"""Requirements of two kinds in one list: bounds on changes against the baseline, and limits on figures."""

from __future__ import annotations

from fairlap.models.task_metrics import found_metric
from fairlap.verdict import RequiredChange, changes_among


def changes_and_limits(require: str) -> tuple[tuple[RequiredChange, ...], str]:
    """Separate ``memory_peak<=+2%``, a change, from ``latency_p99<20ms`` and ``mcc>=-0.1``: scores can be below 0."""
    return changes_among(require, lambda name: found_metric(name) is not None)

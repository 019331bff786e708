"""Figures as a page shows them: few digits, a unit, and a dash with a reason for what is absent."""

from __future__ import annotations

import math
from typing import Any

from fairlap.engine import digits
from fairlap.results.row import Estimate

_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_FIGURES = 6


def duration(value_ns: float, resolution_ns: float | None = None) -> str:
    return digits.duration(value_ns, resolution_ns or 0.0).replace(" us", " µs")


def bounds(estimate: Estimate, resolution_ns: float | None = None) -> str:
    """``[2.86, 2.91]`` in the unit and with the digits of the figure; empty when there is no interval."""
    if estimate.low is None or estimate.high is None:
        return ""
    return "[" + digits.interval(estimate.value, estimate.low, estimate.high, resolution_ns or 0.0).partition("[")[2]


def seconds(value_s: float) -> str:
    return duration(value_s * 1e9)


def size(value_bytes: float) -> str:
    for unit_bytes, unit in _BYTES:
        if abs(value_bytes) >= unit_bytes:
            return f"{value_bytes / unit_bytes:.3g} {unit}"
    return f"{value_bytes:.0f} B"


def rate(value_per_s: float) -> str:
    return f"{value_per_s:,.0f}/s" if value_per_s >= 100 else f"{value_per_s:.3g}/s"


def times(ratio: float) -> str:
    return f"{ratio:.2f}×" if ratio < 100 else f"{ratio:,.0f}×"


def times_with_bounds(ratio: Estimate) -> str:
    if ratio.low is None or ratio.high is None or not math.isfinite(ratio.high) or ratio.low <= 0:
        return times(ratio.value)
    return f"{times(ratio.value)} [{ratio.low:.2f}, {ratio.high:.2f}]"


def error(relative: float) -> str:
    return "exact" if relative == 0 else f"{relative:.1e}"


def plain(value: Any) -> Any:
    """For JSON: six figures are more than any chart shows, and what is not finite is absent."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{_FIGURES}g}") if math.isfinite(value) else None

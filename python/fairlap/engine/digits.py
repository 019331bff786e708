"""Durations as a person reads them, with no digit below what the clock can tell."""

from __future__ import annotations

import math

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
_MOST_DECIMALS = 3
_SIGNIFICANT = 4
_SLACK = 0.1  # a clock that steps by 10.02 ns may show tens of nanoseconds


def unit_of(duration_ns: float) -> tuple[float, str]:
    """The largest unit in which the duration is at least one."""
    for size_ns, name in _UNITS:
        if abs(duration_ns) >= size_ns:
            return size_ns, name
    return _UNITS[-1]


def decimals_for(duration_ns: float, unit_ns: float, resolution_ns: float) -> int:
    """How many decimals show four figures, and none below the resolution."""
    whole_digits = 1 if duration_ns == 0 else max(1, math.floor(math.log10(abs(duration_ns) / unit_ns)) + 1)
    wanted = min(_MOST_DECIMALS, max(0, _SIGNIFICANT - whole_digits))
    if resolution_ns <= 0:
        return wanted
    honest = math.floor(math.log10(unit_ns / resolution_ns) + _SLACK)
    return max(0, min(wanted, honest))


def rounded(duration_ns: float, resolution_ns: float, unit_ns: float, decimals: int) -> str:
    """One number in the given unit. Where the resolution is coarser than the last digit, its digits are zeros."""
    if math.isnan(duration_ns):
        return "nan"
    last_digit_ns = unit_ns / 10**decimals
    if resolution_ns > last_digit_ns:
        step_ns = 10 ** math.floor(math.log10(resolution_ns) + 1 - 2 * _SLACK)
        duration_ns = round(duration_ns / step_ns) * step_ns
    text = f"{duration_ns / unit_ns:,.{decimals}f}"
    return text if text.strip("-0.") else text.lstrip("-")


def duration(duration_ns: float, resolution_ns: float = 0.0) -> str:
    """``10.02 us``: four figures at most, none below the resolution."""
    if math.isnan(duration_ns):
        return "unknown"
    unit_ns, unit = unit_of(duration_ns)
    decimals = decimals_for(duration_ns, unit_ns, resolution_ns)
    return f"{rounded(duration_ns, resolution_ns, unit_ns, decimals)} {unit}"


def counted(count: int, what: str) -> str:
    """``1 sample``, ``2,000 samples``, ``3 processes``."""
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{count:,} {what if count == 1 else plural}"


def interval(middle_ns: float, low_ns: float, high_ns: float, resolution_ns: float = 0.0) -> str:
    """``10.02 us [9.98, 10.07]``: all three in the unit and with the digits of the middle."""
    if math.isnan(middle_ns):
        return "unknown"
    unit_ns, unit = unit_of(middle_ns)
    decimals = decimals_for(middle_ns, unit_ns, resolution_ns)
    middle, low, high = (rounded(value, resolution_ns, unit_ns, decimals) for value in (middle_ns, low_ns, high_ns))
    return f"{middle} {unit} [{low}, {high}]"

"""Quantities as people read them: durations, sizes, rates, shares, ratios, energy, counts.

The only place that decides about digits and units. Numbers come in base units (durations in nanoseconds, as they are
recorded); programs read the numbers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SI_UNITS = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"))
_MOST_DECIMALS = 6
_MOST_DIGITS, _SAME = 12, 1e-12  # of ratios
_DURATION_DECIMALS = 3
_DURATION_FIGURES = 4
_LEAST_IN_A_COLUMN, _MOST_IN_A_COLUMN = 0.1, 10_000.0  # of the unit that all durations of a column share
_SLACK = 0.1  # a clock that steps by 10.02 ns may show tens of nanoseconds


def number(value: float, figures: int = 3) -> str:
    """``3.14``, ``62.1``, ``12,345``: so many figures, and whole numbers in full."""
    text = f"{value:,.{figures}g}"
    return f"{value:,.0f}" if "e+" in text else text


def count(how_many: int, what: str) -> str:
    """``1 sample``, ``2,000 samples``, ``3 processes``."""
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{how_many:,} {what if how_many == 1 else plural}"


def share(value: float, figures: int = 2) -> str:
    """Format as ``2.8 %``."""
    return f"{number(100 * value, figures)} %"


def probability(value: float) -> str:
    """``97.2 %``; what is not certain is not printed as 0 or 100 %."""
    percent = 100 * value
    if 0 < percent < 0.1:
        return "below 0.1 %"
    return "above 99.9 %" if 99.9 < percent < 100 else f"{percent:.1f} %"


def rate(per_second: float) -> str:
    return f"{number(per_second)}/s"


def relative_error(value: float) -> str:
    return "exact" if value == 0 else f"{value:.1e}"


def size(bytes_: float) -> str:
    """``15.6 GiB``: three figures."""
    place = 0
    while abs(bytes_) >= 1023.5 and place < len(_SIZE_UNITS) - 1:
        bytes_ /= 1024
        place += 1
    return f"{number(bytes_)} {_SIZE_UNITS[place]}"


def quantity(value: float, unit: str, low: float | None = None, high: float | None = None) -> str:
    """``2.31 mJ [2.28, 2.4]``: in the unit or a thousandth or millionth of it."""
    scale, prefix = next((each for each in _SI_UNITS if abs(value) >= each[0] or value == 0), _SI_UNITS[-1])
    bounds = "" if low is None or high is None else f" [{number(low / scale)}, {number(high / scale)}]"
    return f"{number(value / scale)} {prefix}{unit}{bounds}"


def rough_duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``2 h 5 min``, for what is only guessed; ``?`` for what is not known."""
    if math.isnan(seconds):
        return "?"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def duration(duration_ns: float, resolution_ns: float | None = None) -> str:
    """``10.02 µs``: at most four figures, none below the resolution."""
    return duration_and_bounds(duration_ns, None, None, resolution_ns)[0]


def seconds(duration_s: float) -> str:
    return duration(duration_s * 1e9)


def common_unit_ns(durations_ns: Iterable[float]) -> float | None:
    """Choose the unit in which a column of durations is read, or None where each needs its own."""
    found = [abs(each) for each in durations_ns if each and math.isfinite(each)]
    if not found:
        return None
    least, most = min(found), max(found)
    larger, smaller = _unit_of(most)[0], _unit_of(least)[0]
    if least >= _LEAST_IN_A_COLUMN * larger:
        return larger
    return smaller if most < _MOST_IN_A_COLUMN * smaller else None


def duration_interval(
    middle_ns: float, low_ns: float | None, high_ns: float | None, resolution_ns: float | None = None
) -> str:
    """Format as ``10.02 µs [9.98, 10.07]``."""
    return _joined(duration_and_bounds(middle_ns, low_ns, high_ns, resolution_ns))


def duration_and_bounds(
    middle_ns: float,
    low_ns: float | None,
    high_ns: float | None,
    resolution_ns: float | None = None,
    unit_ns: float | None = None,
) -> tuple[str, str]:
    """``10.02 µs`` and ``[9.98, 10.07]``, in the unit and with the digits of the middle; empty without an interval.

    ``unit_ns`` is a unit that a whole column shares.
    """
    if math.isnan(middle_ns):
        return "unknown", ""
    unit_ns, unit = _unit_of(unit_ns or middle_ns)
    resolution = resolution_ns or 0.0
    decimals = _duration_decimals(middle_ns, unit_ns, resolution)
    middle = f"{_rounded(middle_ns, resolution, unit_ns, decimals)} {unit}"
    if low_ns is None or high_ns is None or math.isinf(high_ns):
        return middle, ""
    low, high = (_rounded(each, resolution, unit_ns, decimals) for each in (low_ns, high_ns))
    return middle, f"[{low}, {high}]"


def figure(
    value: float, unit: str, low: float | None = None, high: float | None = None, resolution_ns: float | None = None
) -> str:
    """``10.02 µs [9.98, 10.07]``, or ``812/s [790, 830]``."""
    return _joined(figure_and_bounds(value, unit, low, high, resolution_ns))


def figure_and_bounds(
    value: float,
    unit: str,
    low: float | None,
    high: float | None,
    resolution_ns: float | None = None,
    unit_ns: float | None = None,
) -> tuple[str, str]:
    """In ns, s, 1/s, B or 1, which has no unit; the bounds are empty without an interval."""
    if unit in ("ns", "s"):
        middle_ns, low_ns, high_ns = (each and each * {"ns": 1.0, "s": 1e9}[unit] for each in (value, low, high))
        return duration_and_bounds(middle_ns or 0.0, low_ns, high_ns, resolution_ns, unit_ns)
    bounded = low is not None and high is not None and not math.isinf(high)
    text = {"1/s": rate, "B": size}.get(unit, number)
    if unit == "B":
        return text(value), f"[{size(low or 0.0)}, {size(high or 0.0)}]" if bounded else ""
    return text(value), f"[{number(low or 0.0, 4)}, {number(high or 0.0, 4)}]" if bounded else ""


def times(ratio: float) -> str:
    """Format as ``1.57×``."""
    return f"{ratio:.2f}×" if ratio < 100 else f"{ratio:,.0f}×"


def ratio_interval(ratio: float, low: float | None, high: float | None) -> str:
    """Format as ``1.278 [1.247, 1.304]``."""
    return _joined(ratio_and_bounds(ratio, low, high))


def ratio_and_bounds(
    ratio: float, low: float | None, high: float | None, *, apart_from: float = 1.0
) -> tuple[str, str]:
    """Format ``1.278`` and ``[1.247, 1.304]``, with two digits of the width.

    No bound other than 1 is printed as 1, nor as the value that a verdict is about. Otherwise a bound printed next to a
    verdict could round onto the value that the verdict excludes.
    """
    if low is None or high is None or not math.isfinite(high):
        return (f"{ratio:.2f}" if ratio >= 0.1 else number(ratio)), ""
    width = max(high - low, 10.0**-_MOST_DECIMALS)
    decimals = min(_MOST_DECIMALS, max(2, 1 - math.floor(math.log10(width))))
    while decimals < _MOST_DIGITS and any(
        abs(bound - value) > _SAME and abs(float(f"{bound:.{decimals}f}") - value) <= _SAME
        for bound in (low, high)
        for value in (1.0, apart_from)
    ):
        decimals += 1
    return f"{ratio:.{decimals}f}", f"[{low:.{decimals}f}, {high:.{decimals}f}]"


def _joined(value_and_bounds: tuple[str, str]) -> str:
    return " ".join(value_and_bounds).rstrip()


def _unit_of(duration_ns: float) -> tuple[float, str]:
    return next((each for each in _TIME_UNITS if abs(duration_ns) >= each[0]), _TIME_UNITS[-1])


def _duration_decimals(duration_ns: float, unit_ns: float, resolution_ns: float) -> int:
    """How many decimals show four figures, and none below the resolution."""
    whole_digits = 1 if duration_ns == 0 else math.floor(math.log10(abs(duration_ns) / unit_ns)) + 1
    most = _DURATION_DECIMALS if unit_ns == 1.0 else _DURATION_FIGURES  # below 1 only in the unit of a column
    wanted = min(most, max(0, _DURATION_FIGURES - whole_digits))
    if resolution_ns <= 0:
        return wanted
    honest = math.floor(math.log10(unit_ns / resolution_ns) + _SLACK)
    return max(0, min(wanted, honest))


def _rounded(duration_ns: float, resolution_ns: float, unit_ns: float, decimals: int) -> str:
    """One number in the given unit. Where the resolution is coarser than the last digit, its digits are zeros."""
    if math.isnan(duration_ns):
        return "nan"
    last_digit_ns = unit_ns / 10**decimals
    if resolution_ns > last_digit_ns:
        step_ns = 10 ** math.floor(math.log10(resolution_ns) + 1 - 2 * _SLACK)
        duration_ns = round(duration_ns / step_ns) * step_ns
    text = f"{duration_ns / unit_ns:,.{decimals}f}"
    return text if text.strip("-0.") else text.lstrip("-")

"""What users write for shares and durations: 1%, 0.01; 90s, 10m, 1h."""

from __future__ import annotations

import math

from fairlap.errors import InvalidRequest

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def share_in(text: str) -> float:
    share = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < share < 1:
        raise InvalidRequest(f"{text!r} is no share such as 1% or 0.01")
    return share


def duration_s_in(text: str) -> float:
    """A bare number is seconds."""
    unit_s = _SECONDS.get(text[-1:], 1.0)
    seconds = _number(text[:-1] if text[-1:] in _SECONDS else text) * unit_s
    if not 0 < seconds < math.inf:
        raise InvalidRequest(f"{text!r} is no duration such as 90s, 10m or 1h")
    return seconds


def _number(text: str) -> float:
    """NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan

"""What users write for shares and durations: 1%, 0.01; 90s, 10m, 1h."""

from __future__ import annotations

import math
import re

import click

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def a_share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    share = _number(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    if not 0 < share < 1:
        raise click.BadParameter(f"{value!r} is no share such as 1% or 0.01")
    return share


def a_duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    unit = _SECONDS.get(value[-1:], 1.0)
    seconds = _number(value[:-1] if value[-1:] in _SECONDS else value) * unit
    if not 0 < seconds < math.inf:
        raise click.BadParameter(f"{value!r} is no duration such as 90s, 10m or 1h")
    return seconds


def a_device(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"cpu|cuda(:\d{1,2})?", value):
        raise click.BadParameter(f"{value!r} is no device; give cpu, cuda or cuda:0")
    return "cuda:0" if value == "cuda" else value


def _number(text: str) -> float:
    """NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan

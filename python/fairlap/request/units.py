"""Shares and durations as users write them: 1%, 0.01; 50us, 500ms, 90s, 10m, 1h."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Self

from fairlap.errors import InvalidRequest, shown

MOST_S_IN_A_PROCESS = 86_400.0

_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_DURATION = re.compile(r"^(.*?)\s*(us|µs|ms|s|m|h|)$", re.DOTALL)


MOST_SLOWDOWN_PERCENT = 100_000


class Share(float):
    """A part of a whole, above 0 and below 1."""

    def __new__(cls, value: str | float) -> Self:
        text = _text_of(value)
        share = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        if not 0 < share < 1:
            meant = f"; write {text}%" if 1 <= share < 100 and not text.endswith("%") else ""
            raise InvalidRequest(f"{text!r} is not a share above 0% and below 100%, such as 1% or 0.01{meant}")
        return super().__new__(cls, share)


class LargestSlowdown(Share):
    """A share that may be a whole and more, in percent: at 150 % the other takes two and a half times as long."""

    def __new__(cls, value: str | float) -> Self:
        text = _text_of(value)
        percent = _number(text.removesuffix("%")) if text.endswith("%") else 0.0
        if 100 <= percent <= MOST_SLOWDOWN_PERCENT:
            return float.__new__(cls, percent / 100)
        try:
            return super().__new__(cls, value)
        except InvalidRequest:
            meant = f"; write {text}%" if 1 <= _number(text) <= MOST_SLOWDOWN_PERCENT else ""
            what = f"{text!r} is not a slowdown above 0% and up to {MOST_SLOWDOWN_PERCENT:,}%, such as 2%, 0.02 or 150%"
            raise InvalidRequest(what + meant) from None


class Seconds(float):
    """A duration above 0. A bare number is seconds."""

    def __new__(cls, value: str | float) -> Self:
        text = _text_of(value)
        number, unit = _DURATION.findall(text)[0]
        seconds = _number(number) * _SECONDS[unit]
        if not 0 < seconds < math.inf:
            raise InvalidRequest(f"{text!r} is not a duration such as 500ms, 90s, 10m or 1h")
        return super().__new__(cls, seconds)


def require_within_a_day(option: str, seconds: float | None) -> None:
    """For what one process does without a break."""
    if seconds is not None and seconds > MOST_S_IN_A_PROCESS:
        raise InvalidRequest(
            f"{option} is longer than a day in one process (got {seconds:g} s); a bare number means seconds"
        )


_BYTES = {
    **{"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3},
    **{"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3},
}
_SIZE = re.compile(r"^([\d.]+)\s*([KMG]i?B|B|)$")
_LARGEST_ARRAY_BYTES = 8 * 1000**3
_OF_AN_ELEMENT = 4
_PUBLISHED_ELEMENTS = {"deepbench": (100_000, 3_097_600, 4_194_304, 6_553_600, 16_777_217, 38_360_000, 64_500_000)}
"""Numbers of float32: the sums over ranks of DeepBench (Baidu Research, all_reduce_problems.h)."""


def array_sizes_in(text: str) -> tuple[int, ...]:
    """Sizes of arrays of float32, such as ``4KB,1MiB``, ascending; or the published ones of a name."""
    if (named := _PUBLISHED_ELEMENTS.get(text.strip())) is not None:
        return tuple(_OF_AN_ELEMENT * elements for elements in named)
    found = sorted({_array_bytes(part.strip()) for part in text.split(",") if part.strip()})
    if not found:
        raise InvalidRequest(f"{text!r} is not a list of sizes such as 4KB,1MB")
    return tuple(found)


def _array_bytes(text: str) -> int:
    match = _SIZE.match(text)
    size = _number(match[1]) * _BYTES[match[2] or "B"] if match else math.nan
    if not _OF_AN_ELEMENT <= size <= _LARGEST_ARRAY_BYTES or size % _OF_AN_ELEMENT:
        raise InvalidRequest(f"{text!r} is not a size such as 4KB or 1MiB: a multiple of 4 bytes, at most 8GB")
    return int(size)


def _text_of(value: object) -> str:
    """Of anything that Python was given in place of a text or a number, as a message shows it."""
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, Real) else shown(value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan

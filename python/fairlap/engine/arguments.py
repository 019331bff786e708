"""What a caller may ask of a measurement, checked before anything runs."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Collection
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from fairlap.errors import InvalidRequest, shown

DEFAULT_SECONDS = 1.0
LONGEST_SECONDS_FOR_TARGET = 60.0
MOST_SAMPLES = 10**8  # 800 MB; taken and touched before the first sample
MOST_CALLS = 2**24
SHORTEST_PERIOD_S, LONGEST_PERIOD_S = 1e-9, 1e6


@dataclass(frozen=True)
class StopRule:
    """Zero means not asked; the first one reached ends the run."""

    samples: int
    seconds: float
    target: float


@dataclass(frozen=True)
class WarmUpWish:
    kind: Literal["none", "calls", "found"]
    calls: int


def stop_rule(samples: int | None, seconds: float | None, target: float | None) -> StopRule:
    """One second by default; a target alone gives up after a minute."""
    if samples is not None:
        samples = whole_number("samples", samples, least=1, most=MOST_SAMPLES)
    if seconds is not None:
        seconds = positive_number("seconds", seconds)
    if target is not None:
        target = positive_number("target", target)
        if target >= 1:
            raise InvalidRequest(f"target is a relative half-width such as 0.01 for 1 %, not {shown(target)}")
    if seconds is None and samples is None:
        seconds = DEFAULT_SECONDS if target is None else LONGEST_SECONDS_FOR_TARGET
    return StopRule(samples or 0, seconds or 0.0, target or 0.0)


def warm_up_wish(warmup: int | Literal["auto"]) -> WarmUpWish:
    if isinstance(warmup, str) and warmup == "auto":
        return WarmUpWish("found", 0)
    calls = whole_number("warmup", warmup, least=0, most=MOST_CALLS, or_else='"auto"')
    return WarmUpWish("calls", calls) if calls else WarmUpWish("none", 0)


def calls_per_sample_wish(calls_per_sample: int | Literal["auto"]) -> int:
    """Zero means "auto", as in the native engine."""
    if isinstance(calls_per_sample, str) and calls_per_sample == "auto":
        return 0
    return whole_number("calls_per_sample", calls_per_sample, least=1, most=MOST_CALLS, or_else='"auto"')


def whole_number(name: str, value: object, *, least: int, most: int, or_else: str = "") -> int:
    """Of any integer type, such as NumPy's; True and False are refused."""
    choice = f" or {or_else}" if or_else else ""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise InvalidRequest(f"{name} must be a whole number{choice}, not {shown(value)}")
    if not least <= number <= most:
        raise InvalidRequest(f"{name} must be between {least} and {most}{choice} (got {shown(number)})")
    return number


def number_of(name: str, value: object) -> float:
    """Infinity too, but no NaN."""
    try:
        number = float(_real(name, value))
    except OverflowError:  # a whole number beyond every float
        raise InvalidRequest(f"{name} must be a number that a float can hold, not {shown(value)}") from None
    if math.isnan(number):
        raise InvalidRequest(f"{name} must be a number, not {shown(value)}")
    return number


def positive_number(name: str, value: object) -> float:
    try:
        number = float(_real(name, value))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number <= 0:
        raise InvalidRequest(f"{name} must be a finite number above zero, not {shown(value)}")
    return number


def _real(name: str, value: object) -> Real:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidRequest(f"{name} must be a number, not {shown(value)}")
    return value


def period_s(name: str, value: object) -> float:
    """Of something that happens over and over, or goes on for so long."""
    number = number_of(name, value)
    if not SHORTEST_PERIOD_S <= number < LONGEST_PERIOD_S:
        raise InvalidRequest(
            f"{name} must be a number of seconds above 0, from a nanosecond to less than {LONGEST_PERIOD_S:,.0f} s, "
            f"not {shown(value)}"
        )
    return number


def path_text(name: str, value: object) -> str:
    """Turn a path into the text that the engine takes."""
    try:
        path = os.fsdecode(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidRequest(f"{name} must be a path, not {shown(value)}") from None
    if "\0" in path:
        raise InvalidRequest(f"{name} must be a path without a zero byte, not {shown(path)}")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{name} must be a path in UTF-8, not {shown(path)}; rename the file") from None
    return path


def one_of(name: str, value: object, choices: Collection[str], further: str = "") -> str:
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidRequest(f"{name} must be one of {listed} {further}".rstrip() + f", not {value!r}")
    return value


def truth(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"{name} must be True or False, not {shown(value)}")
    return value


def given_name(name: object) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"name must be a text that is not empty, not {shown(name)}")
    return name

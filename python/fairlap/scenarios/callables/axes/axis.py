"""The values at which callables are compared: ``n=1K..1M:x2``, ``n=10..100:+10``, ``dtype=float32,float64``.

K, M and G are 1024, 1024² and 1024³, since sizes of kernels are powers of two.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fairlap.errors import InvalidRequest, shown
from fairlap.suggestions import did_you_mean

Value: TypeAlias = int | float | str
Point: TypeAlias = Mapping[str, Value]
"""One value of every axis."""

MOST_POINTS = 1000
_MOST = 2**53
_BINARY = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)([KMG]?)")
_NEARLY_A_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG])(?:i?[bB]?)")
_RANGE = re.compile(r"(?P<first>[^.:]*(?:\.\d[^.:]*)?)\.\.\.?(?P<last>[^:]*?)(?::(?P<step>.*))?")


class BadAxis(InvalidRequest):
    """An axis is malformed, or the inputs do not have it."""

    code = "E_AXIS"


@dataclass(frozen=True)
class Axis:
    """A parameter of the inputs and its values: all numbers, in ascending order, or all texts."""

    name: str
    values: tuple[Value, ...]

    @property
    def is_numeric(self) -> bool:
        return not isinstance(self.values[0], str)


def axis_in(text: str) -> Axis:
    """Read ``NAME=VALUES``."""
    name, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier():
        raise BadAxis(f"{text!r} is not an axis such as n=1K..1M:x2 or dtype=float32,float64")
    return _axis(name, _values_in(values, text))


def axes_of(given: Mapping[str, str | Sequence[object]]) -> tuple[Axis, ...]:
    """Of the names and their values, each a text as on the command line or a sequence."""
    if not isinstance(given, Mapping) or not given:
        raise BadAxis('axes= is a mapping from parameters to values, such as axes={"n": "1K..1M:x2"}')
    found = []
    for name, values in given.items():
        if isinstance(values, str):
            found.append(axis_in(f"{name}={values}"))
        elif isinstance(values, Sequence | np.ndarray | range):
            found.append(_axis(name, [_plain(name, each) for each in values]))
        else:
            raise BadAxis(f"axis {name} has {shown(values)}; give a sequence, or a text such as 1K..1M:x2")
    return require_distinct(found)


def require_distinct(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    names = [axis.name for axis in axes]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadAxis(f"axis {twice} is given twice; list its values with commas: {twice}=A,B")
    if (count := math.prod(len(axis.values) for axis in axes)) > MOST_POINTS:
        raise BadAxis(f"{count:,} points are more than {MOST_POINTS:,}; give larger steps or fewer axes")
    return tuple(axes)


def points_of(axes: Sequence[Axis]) -> Iterator[Point]:
    """Every combination, the last axis changing first."""
    for values in itertools.product(*(axis.values for axis in axes)):
        yield dict(zip((axis.name for axis in axes), values, strict=True))


def point_text(point: Point) -> str:
    """``n=1,024, dtype=float32``."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in point.items())


def value_text(value: Value) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}" if isinstance(value, float) else value


def nearest(name: str, among: Sequence[str]) -> str:
    """``; did you mean n?``, or what there is."""
    hint = did_you_mean(name, among) or (f"it takes {', '.join(among)}" if among else "")
    return f"; {hint}" if hint else ""


def _axis(name: str, values: Sequence[Value]) -> Axis:
    if not values:
        raise BadAxis(f"axis {name} has no values; give some, such as {name}=1,2,4")
    texts = [value for value in values if isinstance(value, str)]
    if texts and len(texts) < len(values):
        raise BadAxis(f"axis {name} mixes numbers with {texts[0]!r}; write sizes as 1024, 4K or 1K..1M:x2")
    if twice := next((value for value in values if values.count(value) > 1), None):
        raise BadAxis(f"axis {name} has {twice} twice")
    return Axis(name, tuple(values) if texts else tuple(sorted(values)))


def _plain(name: str, value: object) -> Value:
    """Turn NumPy's numbers and types into plain values."""
    if isinstance(value, np.dtype | type):
        try:
            return np.dtype(value).name
        except TypeError:
            raise BadAxis(f"axis {name}: {shown(value)} is not a type of NumPy") from None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadAxis(f"axis {name} takes numbers and texts, not {shown(value)}")
    return value


def _values_in(text: str, whole: str) -> list[Value]:
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise BadAxis(f"{whole!r} lacks a value; separate values with single commas")
    return [value for part in parts for value in (_range_in(part, whole) if ".." in part else [_value_in(part)])]


def _value_in(text: str) -> Value:
    if (number := _number_in(text)) is not None:
        return number
    if close := _NEARLY_A_NUMBER.fullmatch(text):
        raise BadAxis(
            f"{text!r} is not a size; write {close[1]}{close[2].upper()}, where K, M and G are powers of 1024"
        )
    return text


def _number_in(text: str) -> int | float | None:
    """None for what is a text."""
    if (match := _NUMBER.fullmatch(text)) is None:
        return None
    number = float(match[1]) * _BINARY[match[2]]
    if not abs(number) <= _MOST:
        raise BadAxis(f"{text} is too large; the largest number is 2^53")
    is_whole = number.is_integer() and "e" not in match[1] and (match[2] or "." not in match[1])
    return int(number) if is_whole else number


def _range_in(text: str, whole: str) -> list[Value]:
    match = _RANGE.fullmatch(text)
    ends = [_value_in(match[end].strip()) for end in ("first", "last")] if match else []
    if match is None or not all(isinstance(end, int) for end in ends):
        raise BadAxis(f"{text!r} in {whole!r} is not a range of whole numbers such as 1K..1M:x2 or 10..100:+10")
    first, last = (int(end) for end in ends)
    step = (match["step"] or "").strip()
    if not step:
        raise BadAxis(f"{text!r} has no step; write {text.rstrip(':')}:x2 to double, or :+{max(1, first)} to add")
    if first > last:
        raise BadAxis(f"{text!r} begins above its end; write {match['last'].strip()}..{match['first'].strip()}:{step}")
    size = _number_in(step[1:].strip())
    if step[0] not in "x+" or size is None:
        raise BadAxis(
            f"the step {step!r} is not xFACTOR or +AMOUNT; write {match['first']}..{match['last']}:x2 or :+{first}"
        )
    if size <= (1 if step[0] == "x" else 0) or (step[0] == "x" and first <= 0):
        raise BadAxis(f"{text!r} never reaches its end; a factor is above 1, from 1 on, and an amount above 0")
    return list(_steps(first, last, step[0], size, text))


def _steps(first: int, last: int, kind: str, size: float, text: str) -> Iterator[int]:
    """Whole numbers: where a factor is small, some steps round to the same one."""
    given, exact = 0, float(first)
    before: int | None = None
    while round(exact) <= last:
        if (value := round(exact)) != before:
            given, before = given + 1, value
            if given > MOST_POINTS:
                raise BadAxis(f"{text!r} has more than {MOST_POINTS:,} values; give a larger step")
            yield value
        exact = exact * size if kind == "x" else exact + size

"""What cannot be measured is refused before anything runs, in words."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import fairlap
import pytest
from fairlap.engine import NativeFunction, time_calls
from hypothesis import given
from hypothesis import strategies as st


def nothing() -> None:
    pass


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("samples", [0, -3, 2.5, True, 10**12]),
        ("seconds", [0, math.nan, math.inf, "1"]),
        ("target", [math.nan, 1.0, -0.1]),
        ("warmup", [-1, "some"]),
        ("calls_per_sample", [0, None]),
        ("clock", ["sundial", 3]),
        ("args", [[1]]),
        ("kwargs", [{1: 2}]),
        ("done", [5, NativeFunction(4096)]),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_its_argument(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(fairlap.InvalidRequest, match=name):
            time_calls(nothing, **{name: value})


_POWER = ctypes.CDLL(None).pow
_POWER.argtypes = (ctypes.c_double, ctypes.c_double)
_GETPID = ctypes.CDLL(None).getpid


@pytest.mark.parametrize(
    ("function", "arguments", "part"),
    [
        (17, {}, "17"),
        (ctypes.pythonapi.PyErr_Clear, {}, "interpreter lock"),
        (_POWER, {}, "2 arguments"),
        (_GETPID, {"done": print}, "done"),
        (_GETPID, {"kwargs": {"a": 1}}, "keyword"),
        (_GETPID, {"args": (1, 2)}, "one pointer"),
        (_GETPID, {"args": ("text",)}, "one pointer"),
    ],
)
def test_what_cannot_be_called_is_refused(function: Any, arguments: dict[str, Any], part: str) -> None:
    with pytest.raises(fairlap.InvalidRequest, match=part):
        time_calls(function, **arguments)


@pytest.mark.parametrize("address", [0, -1, 2**64, 1.5, True])
def test_a_native_function_needs_a_real_address(address: Any) -> None:
    with pytest.raises(fairlap.InvalidRequest, match="native function"):
        NativeFunction(address)


def test_stream_options_without_a_stream_are_refused() -> None:
    with pytest.raises(fairlap.InvalidRequest, match=r"^cache, gate: "):
        fairlap.measure(nothing, gate="none", cache="warm")


@given(
    samples=st.one_of(st.integers(), st.floats(), st.text(), st.none(), st.booleans()),
    seconds=st.one_of(st.integers(), st.floats(), st.text(), st.none()),
    target=st.one_of(st.floats(), st.integers(), st.none()),
)
def test_any_stop_rule_is_either_understood_or_refused_by_name(samples: Any, seconds: Any, target: Any) -> None:
    from fairlap.engine.arguments import stop_rule

    try:
        rule = stop_rule(samples, seconds, target)
    except fairlap.InvalidRequest as error:
        words = str(error)
    else:
        words = ""
    if words:
        assert words.split()[0] in ("samples", "seconds", "target")
        return
    assert rule.samples > 0 or rule.seconds > 0
    assert math.isfinite(rule.seconds)
    assert 0 <= rule.target < 1

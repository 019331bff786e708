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
    ("request_", "words"),
    [
        ({"samples": 0}, "samples must be between 1"),
        ({"samples": -3}, "samples must be between 1"),
        ({"samples": 2.5}, "samples must be a whole number"),
        ({"samples": True}, "samples must be a whole number"),
        ({"samples": 10**12}, "samples must be between"),
        ({"seconds": 0}, "seconds must be a finite number above zero"),
        ({"seconds": math.nan}, "seconds must be a finite number above zero"),
        ({"seconds": math.inf}, "seconds must be a finite number above zero"),
        ({"seconds": "1"}, "seconds must be a number"),
        ({"target": math.nan}, "target must be a finite number above zero"),
        ({"target": 1.0}, "relative half-width"),
        ({"target": -0.1}, "target must be a finite number above zero"),
        ({"warmup": -1}, 'warmup must be between 0 and \\d+ or "auto"'),
        ({"warmup": "some"}, 'warmup must be a whole number or "auto"'),
        ({"calls_per_sample": 0}, "calls_per_sample must be between 1"),
        ({"calls_per_sample": None}, "calls_per_sample must be a whole number"),
        ({"clock": "sundial"}, "no clock source named 'sundial'"),
        ({"clock": 3}, "clock must be the name of a source"),
        ({"args": [1]}, "args must be a tuple, not list"),
        ({"kwargs": {1: 2}}, "names in kwargs must be strings"),
        ({"done": 5}, "done must be callable"),
        ({"done": NativeFunction(4096)}, "native done goes with a native fn"),
    ],
)
def test_a_wrong_request_is_refused_in_words(request_: dict[str, Any], words: str) -> None:
    with pytest.raises(fairlap.InvalidRequest, match=words):
        time_calls(nothing, **request_)


def test_what_is_not_callable_is_refused() -> None:
    with pytest.raises(fairlap.InvalidRequest, match="must be callable, not 17"):
        time_calls(17)


def test_a_function_that_needs_the_interpreter_lock_is_refused() -> None:
    with pytest.raises(fairlap.InvalidRequest, match="needs the interpreter lock"):
        time_calls(ctypes.pythonapi.PyErr_Clear)


def test_a_native_function_of_several_arguments_is_refused() -> None:
    power = ctypes.CDLL(None).pow
    power.argtypes = (ctypes.c_double, ctypes.c_double)
    with pytest.raises(fairlap.InvalidRequest, match="takes 2 arguments"):
        time_calls(power)


def test_a_native_function_takes_no_python_completion_and_no_keywords() -> None:
    getpid = ctypes.CDLL(None).getpid
    with pytest.raises(fairlap.InvalidRequest, match="done must be native too"):
        time_calls(getpid, done=print)
    with pytest.raises(fairlap.InvalidRequest, match="no keyword arguments"):
        time_calls(getpid, kwargs={"a": 1})
    with pytest.raises(fairlap.InvalidRequest, match="one pointer or nothing"):
        time_calls(getpid, args=(1, 2))
    with pytest.raises(fairlap.InvalidRequest, match="a native function takes one pointer"):
        time_calls(getpid, args=("text",))


@pytest.mark.parametrize("address", [0, -1, 2**64, 1.5, True])
def test_a_native_function_needs_a_real_address(address: Any) -> None:
    with pytest.raises(fairlap.InvalidRequest, match="native function must"):
        NativeFunction(address)


def test_stream_options_without_a_stream_are_refused() -> None:
    with pytest.raises(fairlap.InvalidRequest, match="cache, gate: only clock= goes without a stream"):
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

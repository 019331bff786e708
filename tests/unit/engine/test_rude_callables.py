"""Callables that run nothing, cannot be called natively, undo the pause, or are slow: refused, said or bounded."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import fairlap
import pytest
from fairlap.engine import time_calls


async def a_coroutine() -> None:
    pass


async def an_async_generator() -> AsyncIterator[int]:
    yield 1


def a_generator() -> Iterator[int]:
    yield 1


class Holder:
    async def a_method(self) -> None:
        pass


class Pair(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int), ("second", ctypes.c_int))


class Either(ctypes.Union):
    _fields_ = (("whole", ctypes.c_int), ("part", ctypes.c_char))


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class WordsOfAnotherKind(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


class AsyncObject:
    async def __call__(self) -> None:
        pass


class NoAttributes:
    def __call__(self) -> None:
        pass

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"do not ask for {name}")


class NoText:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


def codes(result: fairlap.Measurement) -> set[str]:
    return {notice.code for notice in result.warnings}


@pytest.mark.parametrize(
    "fn", [a_coroutine, an_async_generator, a_generator, Holder().a_method, AsyncObject(), partial(a_generator)]
)
def test_a_function_whose_body_would_not_run_is_refused(fn: Callable[[], object]) -> None:
    with pytest.raises(fairlap.InvalidRequest, match="done="):
        time_calls(fn, samples=1, warmup=0)


def test_a_coroutine_function_is_timed_with_what_runs_it_as_done() -> None:
    ran: list[int] = []

    async def body() -> None:
        ran.append(1)

    result = time_calls(body, done=lambda coroutine: asyncio.run(coroutine), samples=3, warmup=0)
    assert (result.samples, len(ran)) == (3, 3)


def test_a_generator_function_is_timed_with_what_runs_it_as_done() -> None:
    ran: list[int] = []

    def body() -> Iterator[None]:
        ran.append(1)
        yield

    result = time_calls(body, done=list, samples=3, warmup=0)
    assert (result.samples, len(ran)) == (3, 3)


@pytest.mark.parametrize("rude", [Unspeakable, WordsOfAnotherKind])
def test_an_exception_whose_text_cannot_be_shown_is_reported_by_its_kind(rude: type[Exception]) -> None:
    def call() -> None:
        raise rude

    with pytest.raises(fairlap.CallableRaised) as caught:
        time_calls(call, samples=1, warmup=0)
    assert rude.__name__ in str(caught.value)
    assert isinstance(caught.value.__cause__, rude)


@pytest.mark.parametrize(
    ("call", "on_before", "pause", "came_back"),
    [
        (int, True, True, False),
        (int, False, True, False),
        (gc.enable, True, True, True),
        (gc.enable, False, True, True),
        (gc.enable, True, False, False),
    ],
)
def test_a_collector_that_comes_back_is_reported_and_is_afterwards_as_before(
    call: Callable[[], object], on_before: bool, pause: bool, came_back: bool
) -> None:
    (gc.enable if on_before else gc.disable)()
    try:
        result = time_calls(call, samples=10, warmup=0, pause_gc=pause)
        assert gc.isenabled() == on_before
    finally:
        gc.enable()
    assert ("W_COLLECTOR_CAME_BACK" in codes(result)) == came_back
    assert result.collector_paused == (pause and not came_back)


@pytest.mark.parametrize("kind", [ctypes.c_float, ctypes.c_double, ctypes.c_longdouble, Pair, Either])
def test_a_native_function_that_takes_an_argument_by_value_is_refused(kind: Any) -> None:
    function = ctypes.CDLL(None).abs
    function.argtypes = (kind,)
    with pytest.raises(fairlap.InvalidRequest, match=f"abs .*{kind.__name__}.*lambda"):
        time_calls(function, args=(0,), samples=1, warmup=0)


@pytest.mark.parametrize("kind", [ctypes.c_longdouble, ctypes.py_object, Pair, Either])
def test_a_native_function_that_returns_what_cannot_be_dropped_is_refused(kind: Any) -> None:
    function = ctypes.CDLL(None).abs
    function.restype = kind
    with pytest.raises(fairlap.InvalidRequest, match=f"abs .*{kind.__name__}.*lambda"):
        time_calls(function, args=(0,), samples=1, warmup=0)


def test_a_callable_whose_attributes_raise_is_timed_under_the_name_of_its_type() -> None:
    assert time_calls(NoAttributes(), samples=3, warmup=0).name == "NoAttributes"


def test_something_without_a_text_that_is_not_callable_is_refused_by_its_type() -> None:
    with pytest.raises(fairlap.InvalidRequest, match="NoText"):
        time_calls(NoText(), samples=1)


def test_a_native_function_that_takes_a_pointer_to_a_structure_is_timed() -> None:
    seen: list[int] = []

    def see(pair: Any) -> None:
        seen.append(pair.contents.second)

    result = time_calls(ctypes.CFUNCTYPE(None, ctypes.POINTER(Pair))(see), args=(Pair(1, 2),), samples=3, warmup=0)
    assert seen == [2, 2, 2]
    assert result.settings["call"] == "native"


@pytest.mark.parametrize("address", [-1, 2**64])
def test_a_pointer_that_no_machine_has_is_not_handed_to_a_native_function(address: int) -> None:
    with pytest.raises(fairlap.InvalidRequest, match="unsigned"):
        time_calls(ctypes.CDLL(None).abs, args=(address,), samples=1, warmup=0)


# A window holds one such call, and none is begun that cannot end within two seconds; one call comes before
# the windows, and one after them chooses the calls in a sample. A sleep is never shorter than asked for.
@pytest.mark.slow
@pytest.mark.sanitized
def test_a_slow_call_is_warmed_up_only_as_often_as_fits_in_two_seconds() -> None:
    call_s, most_calls = 0.7, 1 + 2 + 1
    calls = 0

    def slow() -> None:
        nonlocal calls
        calls += 1
        time.sleep(call_s)

    result = time_calls(slow, samples=1)
    assert result.calls_per_sample == 1
    assert calls - 1 == result.warm_up.calls
    assert result.warm_up.calls <= most_calls

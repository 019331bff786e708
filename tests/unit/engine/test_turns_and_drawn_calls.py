"""Callables that take turns in one measured loop, and drawn calls between its samples."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial

import fairlap
import pytest
from fairlap.engine import DrawnCalls, time_calls
from fairlap.errors import InvalidRequest


def test_callables_take_turns_from_call_to_call() -> None:
    order: list[int] = []
    first, *others = (partial(order.append, number) for number in range(3))
    result = time_calls(first, in_turn=others, samples=4, warmup=1, calls_per_sample=2)
    assert order == [0, 1, 2] * 3
    assert result.samples == 4


def test_a_drawn_call_is_timed_but_is_no_sample_and_its_result_is_seen() -> None:
    order: list[str] = []
    seen: list[tuple[int, object]] = []
    lengths_ns: list[float] = []

    def look(number: int, result: object, wall_ns: float) -> None:
        seen.append((number, result))
        lengths_ns.append(wall_ns)

    def drawn(number: int) -> Callable[[], object]:
        def call() -> str:
            order.append(f"drawn {number}")
            time.sleep(0.001)
            return f"result {number}"

        return call

    draws = DrawnCalls([0.0, 0.5, 1.0], drawn, look)
    began_ns = time.perf_counter_ns()
    result = time_calls(lambda: order.append("sample"), samples=4, warmup=0, calls_per_sample=1, drawn=draws)
    assert order == ["drawn 0", "sample", "sample", "drawn 1", "sample", "sample", "drawn 2"]
    assert seen == [(number, f"result {number}") for number in range(3)]
    assert min(lengths_ns) > 0.9e6
    assert result.samples == 4
    assert 1e9 * result.elapsed_s < time.perf_counter_ns() - began_ns - sum(lengths_ns)


def test_a_drawn_call_keeps_its_place_in_the_order_of_turns_free() -> None:
    order: list[int] = []
    draws = DrawnCalls([0.5], lambda _: partial(order.append, 9), lambda *_: None)
    turns = [partial(order.append, 1)]
    time_calls(partial(order.append, 0), in_turn=turns, samples=2, warmup=0, calls_per_sample=1, drawn=draws)
    assert order == [0, 9, 1]


def test_what_is_raised_around_a_drawn_call_ends_the_run() -> None:
    def fails(*_: object) -> Callable[[], object]:
        raise ValueError("no inputs")

    for draws in (DrawnCalls([0.0], fails, print), DrawnCalls([0.0], lambda _: int, fails)):
        with pytest.raises(fairlap.CallableRaised, match="no inputs"):
            time_calls(lambda: None, samples=3, warmup=0, drawn=draws)


def test_drawn_calls_wait_for_their_completion() -> None:
    waited: list[object] = []
    draws = DrawnCalls([0.0], lambda _: lambda: "drawn", lambda *_: None)
    time_calls(lambda: "call", samples=1, warmup=0, done=waited.append, drawn=draws)
    assert waited == ["drawn", "call"]


def test_a_native_function_takes_no_turns() -> None:
    with pytest.raises(InvalidRequest):
        time_calls(ctypes.CDLL(None).getpid, in_turn=[int], samples=1)

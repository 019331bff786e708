"""Collective operations are timed as one rank makes them, and wrong results are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from fairlap.frameworks.contract import Collectives, Unsupported
from fairlap.request.fields.scale import COLLECTIVES, Collective, Rank
from fairlap.scenarios.collectives.collective_messages import TimeCollective, TimedOperation
from fairlap.scenarios.collectives.timed_operations import given, right, timed


def collectives(bind: Callable[[Collective, Any, int], Callable[[], Any]]) -> Collectives:
    return Collectives(bind, None, lambda result: result, {})


def unchanged(_operation: Collective, array: Any, _root: int) -> Callable[[], Any]:
    """Right for one rank only."""
    return lambda: array


def asked(operation: TimedOperation) -> TimeCollective:
    return TimeCollective(operation, 4096, 0.1, samples=20, warmup=4, calls_per_sample=2)


@pytest.mark.parametrize("operation", [*COLLECTIVES, "copy"])
def test_a_rank_alone_is_timed_and_right(operation: TimedOperation) -> None:
    found = timed(collectives(unchanged), asked(operation), Rank(0, 1, "127.0.0.1:1"))
    assert (found.why, found.wrong) == ("", "")
    assert len(found.times_ns) == 20


@pytest.mark.parametrize("operation", COLLECTIVES)
def test_what_is_not_exchanged_is_wrong(operation: Collective) -> None:
    found = timed(collectives(unchanged), asked(operation), Rank(1, 2, "127.0.0.1:1"))
    assert found.wrong.startswith(operation)
    assert "rank 1" in found.wrong


def test_a_result_that_goes_wrong_while_it_is_timed_is_found() -> None:
    calls = []

    def bind(_operation: Collective, array: Any, _root: int) -> Callable[[], Any]:
        def call() -> Any:
            calls.append(1)
            return array if len(calls) < 20 or len(calls) > 40 else np.zeros_like(array)

        return call

    found = timed(collectives(bind), asked("all_reduce"), Rank(0, 1, "127.0.0.1:1"))
    assert found.wrong


def test_an_operation_that_the_framework_lacks_has_no_times() -> None:
    def bind(*_: Any) -> Callable[[], Any]:
        raise Unsupported("it has none")

    found = timed(collectives(bind), asked("broadcast"), Rank(0, 2, "127.0.0.1:1"))
    assert found.why == "it has none"
    assert found.times_ns == ()


def test_every_rank_broadcasts_in_turn() -> None:
    roots: list[int] = []

    def bind(_operation: Collective, array: Any, root: int) -> Callable[[], Any]:
        def call(result: Any) -> Any:
            roots.append(root)
            return result

        return partial(call, array)

    timed(collectives(bind), asked("broadcast"), Rank(0, 3, "127.0.0.1:1"))
    timed_roots = roots[3:-4]  # without the checked calls
    assert timed_roots[:6] == [0, 1, 2, 0, 1, 2]


def test_what_is_right_is_exact_whatever_the_order_of_a_sum() -> None:
    parts = [given(0, number, 1000) for number in range(5)]
    total = right("all_reduce", 0, 5, 1000, 0)
    assert np.array_equal(total, parts[4] + parts[3] + parts[2] + parts[1] + parts[0])
    assert np.array_equal(right("all_gather", 0, 5, 1000, 0), np.concatenate(parts))
    assert np.array_equal(right("broadcast", 0, 5, 1000, 3), parts[3])
    assert not np.array_equal(given(1, 0, 1000), parts[0])

"""Async functions: refused where nothing would run them, and timed where a loop does, whose own cost is the floor."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator

import fairlap
import pytest
from fairlap.errors import InvalidRequest

WAIT_S = 0.004


async def nothing() -> None:
    pass


async def waits() -> int:
    await asyncio.sleep(WAIT_S)
    return 1


async def computes() -> int:
    return sum(range(20_000))


def test_an_async_function_run_by_one_loop_takes_what_it_takes_by_its_own_clock_and_what_the_loop_takes() -> None:
    by_hand_ns: list[int] = []

    async def timed() -> None:
        began_ns = time.perf_counter_ns()
        await waits()
        by_hand_ns.append(time.perf_counter_ns() - began_ns)

    with asyncio.Runner() as runner:
        waited = fairlap.measure(lambda: runner.run(timed()), samples=50, warmup=3)
        floor = fairlap.measure(lambda: runner.run(nothing()), samples=200, warmup=20)
    of_loop_ns, least_of_empty_ns = waited.wall_ns - by_hand_ns[-50:], float(floor.wall_ns.min())
    assert min(by_hand_ns) >= WAIT_S * 1e9
    assert 0 < least_of_empty_ns < WAIT_S * 1e9  # of an empty one: what the loop takes for each call
    # Of the quickest ones, since a busy machine only delays.
    assert 0 < of_loop_ns.min() < min(10 * least_of_empty_ns, WAIT_S * 1e9)


def test_the_loop_can_be_what_waits_for_the_call() -> None:
    ran = []

    async def work() -> None:
        ran.append(1)

    with asyncio.Runner() as runner:
        found = fairlap.measure(work, done=runner.run, samples=5, warmup=0)
    assert (found.samples, len(ran)) == (5, 5)
    assert "host_issue_ns" in found.quantities


def test_async_functions_that_a_loop_runs_are_compared_with_their_answers() -> None:
    with asyncio.Runner() as runner:
        found = fairlap.compare(
            {
                "once": lambda: runner.run(computes()),
                "twice": lambda: runner.run(computes()) * runner.run(computes()) // sum(range(20_000)),
            },
            blocks=8,
            seconds=0.01,
        )
    assert [row.name for row in found.rows] == ["once", "twice"]
    assert found.answers.compared == "each other"
    once, twice = found.rows
    assert twice.median_ns > 1.4 * once.median_ns  # on a busy machine too, where there may be no verdict


@pytest.mark.parametrize(
    ("callables", "code"),
    [
        ({"a": nothing, "b": nothing}, "E_REQUEST"),
        ({"a": lambda: None, "b": nothing}, "E_REQUEST"),
        ({"a": lambda: nothing(), "b": lambda: nothing()}, "E_DEFERRED_WORK"),
    ],
)
def test_a_comparison_of_what_nothing_runs_is_refused_in_one_line(
    callables: dict[str, Callable[[], object]], code: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Python warns of a coroutine that was never awaited
        with pytest.raises(InvalidRequest) as refused:
            fairlap.compare(callables)
    assert refused.value.code == code
    assert "\n" not in str(refused.value)
    assert "asyncio.Runner" in str(refused.value)


@pytest.mark.filterwarnings("ignore:coroutine")  # of calls that are timed and not ranked
def test_one_of_several_that_only_makes_a_coroutine_is_not_ranked() -> None:
    found = fairlap.compare({"runs": lambda: 1, "makes": lambda: nothing()}, blocks=6, seconds=0.001)
    assert found.answers.wrong["makes"].code == "E_DEFERRED_WORK"
    assert not found.comparisons


@pytest.mark.filterwarnings("ignore:coroutine")  # of a runner that could not close
def test_in_a_notebook_another_thread_has_a_loop_of_its_own() -> None:
    """A kernel runs cells within a loop, where no second one may run."""

    def timed() -> fairlap.Measurement:
        with asyncio.Runner() as runner:
            return fairlap.measure(lambda: runner.run(waits()), samples=5, warmup=1)

    async def cell() -> fairlap.Measurement:
        with pytest.raises(RuntimeError, match="another loop is running"):
            timed()
        return await asyncio.to_thread(timed)

    found = asyncio.run(cell())
    assert found.samples == 5
    assert found.median_ns >= WAIT_S * 1e9


def generates() -> Iterator[int]:
    yield 1


@pytest.mark.filterwarnings("ignore:coroutine")  # of the calls that were timed
@pytest.mark.parametrize("call", [lambda: waits(), lambda: generates()], ids=["coroutine", "generator"])
def test_a_callable_that_makes_what_nothing_runs_is_not_measured(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        fairlap.measure(call, samples=10)
    assert refused.value.code == "E_DEFERRED_WORK"
    with pytest.raises(InvalidRequest) as refused:
        fairlap.compare({"a": call, "b": call}, any_answers=True, blocks=2, seconds=0.001)
    assert refused.value.code == "E_DEFERRED_WORK"


def test_what_is_looked_at_is_one_call_more_and_none_without_a_warm_up() -> None:
    calls: list[int] = []
    fairlap.measure(lambda: calls.append(1), samples=10, warmup=2, calls_per_sample=1)
    assert len(calls) == 13
    calls.clear()
    fairlap.measure(lambda: calls.append(1), samples=10, warmup=0, calls_per_sample=1)
    assert len(calls) == 10


def test_one_that_takes_no_further_call_is_measured() -> None:
    left = iter(range(12))
    assert fairlap.measure(lambda: next(left), samples=10, warmup=2, calls_per_sample=1).samples == 10

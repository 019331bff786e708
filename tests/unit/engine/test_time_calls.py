"""The measured loop through its Python face."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import signal
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import fairlap
import numpy as np
import pytest
from fairlap.engine import DrawnCalls, MeasurementInProgress, time_calls
from fairlap.engine.measurement import Measurement
from fairlap.errors import InvalidRequest


def counted(limit: float = math.inf, error: type[BaseException] = ValueError) -> Callable[[], None]:
    def call() -> None:
        call.calls += 1  # type: ignore[attr-defined]
        if call.calls > limit:  # type: ignore[attr-defined]
            raise error("enough")

    call.calls = 0  # type: ignore[attr-defined]
    return call


def codes(result: Measurement) -> set[str]:
    return {notice.code for notice in result.warnings}


def test_a_run_by_count_calls_exactly_warmup_plus_samples_times_calls() -> None:
    call = counted()
    result = time_calls(call, samples=100, warmup=7, calls_per_sample=3)
    assert call.calls == 7 + 300  # type: ignore[attr-defined]
    assert (result.samples, result.calls_per_sample, result.stopped_by) == (100, 3, "samples")
    assert result.warm_up.calls == 7


def test_without_warm_up_the_first_call_is_the_first_sample() -> None:
    call = counted()
    result = time_calls(call, samples=5, warmup=0)
    assert call.calls == 5  # type: ignore[attr-defined]
    assert result.warm_up.kind == "none"
    assert result.calls_per_sample == 1


def test_positional_and_keyword_arguments_reach_the_callable() -> None:
    seen: list[object] = []

    def call(*args: object, **kwargs: object) -> None:
        seen.append((args, kwargs))

    time_calls(call, args=(1, "two"), kwargs={"three": 3}, samples=2, warmup=0)
    assert seen == [((1, "two"), {"three": 3})] * 2


def test_samples_are_float64_over_the_engines_own_memory() -> None:
    result = time_calls(counted(), samples=50, warmup=0)
    values = result.wall_ns
    assert values.dtype == np.float64
    assert values.shape == (50,)
    assert not values.flags.owndata
    assert not values.flags.writeable
    assert values.__array_interface__["data"] == result.wall_ns.__array_interface__["data"]


def test_samples_outlive_the_measurement_they_came_from() -> None:
    values = time_calls(counted(), samples=1000, warmup=0).wall_ns
    gc.collect()
    assert np.isfinite(values).all()


def test_the_completion_gets_what_the_call_returned_and_is_inside_the_interval() -> None:
    waited: list[int] = []

    def wait(number: int) -> None:
        time.sleep(0.002)
        waited.append(number)

    result = time_calls(lambda: 42, done=wait, samples=10, warmup=0)
    assert waited == [42] * 10
    assert np.median(result.wall_ns) > 2e6
    assert np.median(result.host_issue_ns) < 1e6


def test_several_calls_in_one_sample_are_completed_by_one_wait_on_the_last() -> None:
    issued = iter(range(1000))
    waited: list[int] = []
    time_calls(lambda: next(issued), done=waited.append, samples=3, warmup=0, calls_per_sample=4)
    assert waited == [3, 7, 11]


def test_freeing_the_result_is_part_of_the_call() -> None:
    class SlowToFree:
        def __del__(self) -> None:
            time.sleep(0.002)

    result = time_calls(SlowToFree, samples=5, warmup=0)
    assert np.median(result.wall_ns) > 2e6


def test_an_exception_carries_the_samples_so_far() -> None:
    with pytest.raises(fairlap.CallableRaised, match="ValueError") as caught:
        time_calls(counted(limit=20), samples=100, warmup=0)
    assert caught.value.result.samples == 20
    assert caught.value.result.stopped_by == "raised"
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_exception_in_the_completion_carries_the_samples_so_far() -> None:
    with pytest.raises(fairlap.CallableRaised) as caught:
        time_calls(lambda: 0, done=lambda _: counted(limit=0)(), samples=100, warmup=0)
    assert caught.value.result.samples == 0


def test_an_exception_while_freeing_the_result_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rude:
        def __del__(self) -> None:
            raise RuntimeError("not heard")

    unheard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: unheard.append(unraisable.exc_value))
    assert time_calls(Rude, samples=3, warmup=0).samples == 3
    assert len(unheard) == 3


@pytest.mark.parametrize("ends_by_raising", [False, True])
def test_the_garbage_collector_is_paused_and_put_back(ends_by_raising: bool) -> None:
    seen: list[bool] = []

    def call() -> None:
        seen.append(gc.isenabled())
        if ends_by_raising and len(seen) == 2:
            raise ValueError

    try:
        paused = time_calls(call, samples=3, warmup=0).collector_paused
    except fairlap.CallableRaised as error:
        paused = error.result.collector_paused
    assert paused
    assert not any(seen)
    assert gc.isenabled()


def test_the_collector_is_left_alone_on_request() -> None:
    seen: list[bool] = []
    result = time_calls(lambda: seen.append(gc.isenabled()), samples=3, warmup=0, pause_gc=False)
    assert all(seen)
    assert not result.collector_paused


def test_ctrl_c_stops_at_the_next_call_and_returns_what_was_sampled() -> None:
    call = counted()

    def interrupting() -> None:
        call()
        if call.calls == 10:  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGINT)

    result = time_calls(interrupting, samples=1000, warmup=0)
    assert result.interrupted
    assert result.samples in (9, 10)  # the signal may be seen inside the tenth call or right after it
    assert "W_INTERRUPTED" in codes(result)


def test_ctrl_c_stops_a_builtin_that_never_looks_for_signals() -> None:
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = time_calls(math.sqrt, args=(2.0,), seconds=20)
    timer.join()
    assert result.interrupted
    assert result.elapsed_s < 10


def test_ctrl_c_stops_a_native_function() -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = time_calls(ctypes.CDLL(None).getpid, seconds=20, warmup=0, calls_per_sample=1000)
    timer.join()
    assert result.interrupted
    assert result.samples > 0
    assert result.elapsed_s < 10


def test_an_exception_from_a_signal_handler_is_not_mistaken_for_ctrl_c() -> None:
    def on_alarm(number: int, frame: object) -> None:
        raise TimeoutError("alarm")

    before = signal.signal(signal.SIGALRM, on_alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(fairlap.CallableRaised, match="TimeoutError") as caught:
            time_calls(math.sqrt, args=(2.0,), seconds=20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught.value.result.elapsed_s < 10


def test_measuring_inside_a_measured_callable_is_refused() -> None:
    with pytest.raises(fairlap.CallableRaised) as caught:
        time_calls(lambda: time_calls(counted(), samples=1), samples=2, warmup=0)
    assert isinstance(caught.value.__cause__, MeasurementInProgress)


def test_measuring_from_two_threads_at_once_is_refused_and_the_first_goes_on() -> None:
    inside = threading.Event()
    refused: list[BaseException] = []

    def other() -> None:
        inside.wait(10)
        try:
            time_calls(counted(), samples=1, warmup=0)
        except MeasurementInProgress as error:
            refused.append(error)

    thread = threading.Thread(target=other)
    thread.start()

    def call() -> None:
        inside.set()
        time.sleep(0.001)

    result = time_calls(call, samples=200, warmup=0)
    thread.join()
    assert result.samples == 200
    assert len(refused) == 1


def test_measuring_works_from_another_thread() -> None:
    results: list[Measurement] = []
    thread = threading.Thread(target=lambda: results.append(time_calls(counted(), samples=10, warmup=0)))
    thread.start()
    thread.join()
    assert results[0].samples == 10


def test_other_python_threads_run_while_native_code_is_timed() -> None:
    turns = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal turns
        while not stop.is_set():
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = turns
    result = time_calls(ctypes.CDLL(None).getpid, seconds=0.2)
    during = turns - before
    stop.set()
    thread.join()
    assert result.settings["call"] == "native"
    assert during > 1000


def measured_in_the_child() -> Measurement:
    return time_calls(counted(), samples=2, warmup=0)


def test_a_child_forked_in_a_measured_call_owes_nothing_to_the_parents_measurement() -> None:
    def fork() -> int:
        child = os.fork()
        if child == 0:
            try:
                measured_in_the_child()
            except MeasurementInProgress:
                os._exit(3)
            os._exit(0)
        return os.waitpid(child, 0)[1]

    statuses: list[int] = []
    time_calls(lambda: statuses.append(fork()), samples=1, warmup=0)
    assert statuses == [0]


def test_a_recursive_callable_is_just_a_callable() -> None:
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    assert time_calls(fibonacci, args=(8,), samples=10, warmup=0).samples == 10


def test_page_faults_of_the_callable_are_counted_and_noticed() -> None:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    size = 64 * 4096

    def touch_fresh_pages() -> None:
        address = libc.mmap(None, ctypes.c_size_t(size), 3, 0x22, -1, 0)
        ctypes.memset(address, 1, size)
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))

    result = time_calls(touch_fresh_pages, samples=50, warmup=1)
    assert result.counts["thread_minor_faults"] >= 50
    assert "W_PAGE_FAULTS" in codes(result)
    assert result.groups["samples"].sum() == 50


def test_voluntary_switches_are_counted() -> None:
    result = time_calls(time.sleep, args=(0.02,), samples=20, warmup=0)
    assert result.counts["thread_voluntary_switches"] >= 20


def test_cpu_time_of_the_thread_and_of_the_process_are_kept_apart() -> None:
    stop = threading.Event()
    busy = threading.Thread(target=lambda: [math.factorial(2000) for _ in iter(stop.is_set, True)])
    busy.start()
    result = time_calls(time.sleep, args=(0.005,), samples=20, warmup=0)
    stop.set()
    busy.join()
    assert result.counts["process_cpu_ns"] > 2 * result.counts["thread_cpu_ns"]


@pytest.mark.sanitized
def test_the_loop_stores_a_million_samples_without_fault_or_python_allocation() -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = time_calls(ctypes.CDLL(None).getpid, samples=1_000_000, warmup=100, calls_per_sample=1)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert result.counts["thread_minor_faults"] == 0
    assert after - before < 100_000  # the result object, not eight megabytes of samples


def test_a_partial_is_named_after_its_function() -> None:
    assert time_calls(partial(math.pow, 2.0, 3.0), samples=1, warmup=0).name == "pow"


def test_both_clock_sources_can_be_asked_for() -> None:
    assert time_calls(counted(), samples=1, warmup=0, clock="monotonic_raw").settings["clock"] == "monotonic_raw"
    assert time_calls(counted(), samples=1, warmup=0).settings["clock"] in ("tsc", "cntvct", "monotonic_raw")


def test_few_samples_have_a_median_but_no_interval() -> None:
    result = time_calls(counted(), samples=3, warmup=0)
    assert result.headline.interval.coverage == 0
    assert "W_FEW_SAMPLES" in codes(result)


def test_a_target_that_cannot_be_reached_is_reported() -> None:
    result = time_calls(time.sleep, args=(0.0001,), target=1e-9, seconds=0.05)
    assert result.stopped_by == "seconds"
    assert "W_TARGET_NOT_REACHED" in codes(result)


@pytest.mark.parametrize("call", [ctypes.CDLL(None).abs, partial(time.sleep, 0.001)])
def test_a_warning_marks_exactly_the_samples_shorter_than_ten_steps_of_the_clock(call: Callable[[], object]) -> None:
    result = time_calls(call, samples=100, calls_per_sample=1)
    assert ("W_NEAR_THE_FLOOR" in codes(result)) == (result.median_ns < 10 * result.headline.floor["quantum_ns"])


def test_a_quantity_that_was_not_taken_says_why() -> None:
    result = time_calls(counted(), samples=1, warmup=0)
    with pytest.raises(fairlap.NotAvailable, match="stream="):
        _ = result.device_span_ns
    with pytest.raises(fairlap.NotAvailable):
        _ = result.host_issue_ns


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
    result = time_calls(lambda: order.append("sample"), samples=4, warmup=0, calls_per_sample=1, drawn=draws)
    assert order == ["drawn 0", "sample", "sample", "drawn 1", "sample", "sample", "drawn 2"]
    assert seen == [(number, f"result {number}") for number in range(3)]
    assert min(lengths_ns) > 0.9e6
    assert result.samples == 4
    assert result.elapsed_s < 0.001


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

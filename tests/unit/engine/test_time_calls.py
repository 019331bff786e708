"""The measured loop through its Python face: what is called, what is a sample, and what is counted."""

from __future__ import annotations

import ctypes
import gc
import math
import threading
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import fairlap
import numpy as np
import pytest
from counted_calls import counted
from fairlap.engine import time_calls
from fairlap.engine.measurement import Measurement


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
    pages_of_samples = 8_000_000 // 4096
    assert result.counts["thread_minor_faults"] < pages_of_samples / 20  # a machine short of memory may take some back
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

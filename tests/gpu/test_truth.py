"""Kernels that count their own cycles, compared with the engine's readings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fairlap.engine import floor
from fairlap.engine.cuda.stream_calls import time_on_stream

# What starting and ending a kernel adds, two to seven microseconds, with slack for boards we have not seen.
LARGEST_SPAN_BIAS_NS = 12_000
LARGEST_RECORD_BIAS_NS = 10_000


def spans_and_truth(spinner: Any, own_stream: Any, length_ns: int, **options: Any) -> tuple[Any, float]:
    """Time one call per sample, and compare with the kernels' own times."""
    cycles_per_ns = spinner.cycles_per_ns(own_stream.cuda_stream)
    cycles = round(length_ns * cycles_per_ns)
    spinner.lengths_cycles()
    result = time_on_stream(
        lambda: spinner.spin_cycles(own_stream.cuda_stream, cycles),
        stream=own_stream,
        samples=60,
        warmup=5,
        calls_per_sample=1,
        **options,
    )
    own_stream.synchronize()
    return result, float(np.median(spinner.lengths_cycles())) / cycles_per_ns


@pytest.mark.parametrize("length_ns", [5_000, 20_000, 100_000, 1_000_000, 10_000_000])
def test_a_gated_span_is_as_long_as_the_kernel(
    spinner: Any, own_stream: Any, length_ns: int, record_property: Callable[[str, object], None]
) -> None:
    result, truth_ns = spans_and_truth(spinner, own_stream, length_ns)
    assert result.settings["gate"] in ("stream_wait", "spin"), str(result)
    bias_ns = result.median_ns - truth_ns
    record_property("bias_ns", bias_ns)
    # No method can see less than the kernel itself, but for the clock's rate.
    assert -100 - 0.002 * length_ns < bias_ns < LARGEST_SPAN_BIAS_NS + 0.002 * length_ns, str(result)


@pytest.mark.parametrize("length_ns", [5_000, 100_000, 1_000_000])
def test_kernel_time_from_records_is_as_long_as_the_kernel(
    spinner: Any, own_stream: Any, length_ns: int, record_property: Callable[[str, object], None]
) -> None:
    result, truth_ns = spans_and_truth(spinner, own_stream, length_ns, method="kernel_sum")
    bias_ns = result.median_ns - truth_ns
    record_property("bias_ns", bias_ns)
    assert -100 - 0.002 * length_ns < bias_ns < LARGEST_RECORD_BIAS_NS + 0.002 * length_ns, str(result)


def test_a_tenth_of_a_microsecond_between_two_kernels_of_two_is_found_with_the_right_sign(
    context: Any, spinner: Any, own_stream: Any
) -> None:
    cycles_per_ns = context.clock_khz() / 1e6
    short = round(2_000 * cycles_per_ns)
    longer = round(2_100 * cycles_per_ns)
    medians: dict[int, list[float]] = {short: [], longer: []}
    for _ in range(5):
        for cycles in (short, longer):
            result = time_on_stream(
                lambda cycles=cycles: spinner.spin_cycles(own_stream.cuda_stream, cycles),
                stream=own_stream,
                samples=200,
                calls_per_sample=32,
                warmup=10,
            )
            medians[cycles].append(result.median_ns)
    assert np.median(medians[longer]) > np.median(medians[short])


def test_many_calls_in_one_interval_agree_with_one(spinner: Any, own_stream: Any) -> None:
    spans = {}
    for calls in (1, 16):
        spans[calls] = time_on_stream(
            lambda: spinner.spin_ns(own_stream.cuda_stream, 50_000),
            stream=own_stream,
            samples=50,
            calls_per_sample=calls,
            warmup=3,
        ).median_ns
    assert abs(spans[16] - spans[1]) < 8_000


def test_the_floor_is_what_such_a_device_can_have() -> None:
    devices = floor()["cuda"]
    assert devices
    figures = devices[0]
    assert 0.5 < figures["event_quantum_ns"] < 2_000
    assert 0 <= figures["empty_pair_ns"] < 50_000
    assert 50 < figures["record_cost_ns"] < 100_000
    assert 200 < figures["launch_cost_ns"] < 200_000
    assert 0 < figures["timer_step_ns"] < 2_000_000
    assert figures["gate"] in ("stream_wait", "spin")


def test_an_empty_kernel_is_reported_to_be_near_the_floor(spinner: Any, own_stream: Any) -> None:
    result = time_on_stream(
        lambda: spinner.empty(own_stream.cuda_stream), stream=own_stream, samples=50, warmup=5, calls_per_sample=1
    )
    assert result.median_ns < 50_000
    assert (result.host_issue_ns > 0).all()

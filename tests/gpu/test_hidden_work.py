"""Work that the events do not see makes the sample invalid, on real streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fairlap.engine.cuda.stream_calls import time_on_stream

TAIL_NS = 2_000_000


def test_work_on_a_second_stream_is_found(context: Any, own_stream: Any, spinner: Any) -> None:
    other = context.new_own_stream()

    def work() -> None:
        spinner.spin_ns(own_stream.cuda_stream, 20_000)
        spinner.spin_ns(other.cuda_stream, TAIL_NS)

    result = time_on_stream(work, stream=own_stream, samples=20, warmup=5, calls_per_sample=1)
    assert np.isnan(result.device_span_ns).all(), str(result)
    assert result.invalid["hidden_work"] == 20
    assert result.settings["gate"] == "none"


def test_a_stream_that_the_work_does_not_run_on_is_found(context: Any, own_stream: Any, spinner: Any) -> None:
    other = context.new_own_stream()
    result = time_on_stream(
        lambda: spinner.spin_ns(other.cuda_stream, TAIL_NS), stream=own_stream, samples=20, warmup=5, calls_per_sample=1
    )
    assert np.isnan(result.device_span_ns).all(), str(result)


def test_work_that_is_joined_again_is_part_of_the_span(context: Any, own_stream: Any, spinner: Any) -> None:
    other = context.new_own_stream()

    def work() -> None:
        context.make_wait(other.cuda_stream, own_stream.cuda_stream)
        spinner.spin_ns(other.cuda_stream, TAIL_NS)
        context.make_wait(own_stream.cuda_stream, other.cuda_stream)

    result = time_on_stream(work, stream=own_stream, samples=20, warmup=5, calls_per_sample=1)
    assert not np.isnan(result.device_span_ns).any(), str(result)
    assert 0.9 * TAIL_NS < result.median_ns < 1.2 * TAIL_NS + 20_000


def test_ordinary_work_is_not_called_hidden(torch: Any, stream: Any) -> None:
    a = torch.randn(1024, 1024, device="cuda")
    for gate in ("auto", "none"):
        result = time_on_stream(lambda: a @ a, stream=stream, samples=500, calls_per_sample=1, gate=gate)
        # Without a gate an interrupt between two records looks like a tail; with one it is rare, not impossible.
        assert result.invalid.get("hidden_work", 0) <= (3 if gate == "auto" else 10), str(result)


@pytest.mark.parametrize("guard", [True, False])
def test_the_guard_in_force_is_named(torch: Any, stream: Any, guard: bool) -> None:
    a = torch.ones(10, device="cuda")
    result = time_on_stream(lambda: a.add_(1), stream=stream, samples=10, guard=guard)
    assert (result.settings["guard"] != "none") is guard

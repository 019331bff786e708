"""The gate holds a real stream, lets it go, and never leaves it standing."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.errors import NotAvailable


def chain(spinner: Any, stream: Any, length: int = 100) -> Any:
    def work() -> None:
        for _ in range(length):
            spinner.empty(stream.cuda_stream)

    return work


@pytest.mark.parametrize("gate", ["stream_wait", "spin"])
def test_launch_gaps_are_in_the_span_only_without_a_gate(spinner: Any, own_stream: Any, gate: str) -> None:
    work = chain(spinner, own_stream)
    gated = time_on_stream(work, stream=own_stream, samples=40, calls_per_sample=1, gate=gate)  # type: ignore[arg-type]
    open_ = time_on_stream(work, stream=own_stream, samples=40, calls_per_sample=1, gate="none")
    assert gated.settings["gate"] == gate
    assert not np.isnan(gated.device_span_ns).any(), str(gated)
    assert gated.median_ns < open_.median_ns


def test_automatic_takes_the_stream_wait(spinner: Any, own_stream: Any) -> None:
    result = time_on_stream(chain(spinner, own_stream, 5), stream=own_stream, samples=20)
    assert result.settings["gate"] == "stream_wait", str(result)


def test_a_call_that_waits_for_the_device_does_not_hang_and_is_timed_without_a_gate(
    spinner: Any, own_stream: Any
) -> None:

    def work() -> None:
        spinner.spin_ns(own_stream.cuda_stream, 10_000)
        own_stream.synchronize()

    begun = time.monotonic()
    result = time_on_stream(work, stream=own_stream, samples=20, gate_timeout_s=0.1)
    assert time.monotonic() - begun < 30
    assert result.settings["gate"] == "none"
    assert any(notice.code == "W_GATE_FALLBACK" for notice in result.warnings)
    assert not np.isnan(result.median_ns)


def test_a_gate_asked_for_by_name_that_the_call_waits_for_is_an_error(spinner: Any, own_stream: Any) -> None:

    def work() -> None:
        spinner.spin_ns(own_stream.cuda_stream, 10_000)
        own_stream.synchronize()

    with pytest.raises(NotAvailable, match="gate='none'"):
        time_on_stream(work, stream=own_stream, samples=20, gate="stream_wait", gate_timeout_s=0.1)
    own_stream.synchronize()  # The stream goes on.


def test_a_call_of_more_launches_than_the_queue_holds_does_not_hang(spinner: Any, own_stream: Any) -> None:
    result = time_on_stream(chain(spinner, own_stream, 3000), stream=own_stream, samples=5, calls_per_sample=1)
    assert result.samples == 5
    assert result.invalid.get("gate_timed_out", 0) < 5

"""Which figures of a device a contestant gets, from measurements made up here."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.engine.measurement import Quantity
from fairlap.frameworks.contract import Contestant
from fairlap.scenarios.device_quantities import device_quantities, with_completion

SAMPLES = 829
COMPLETION = "fairlap.engine.cuda.device_completion.device_completion"


def quantities(monkeypatch: pytest.MonkeyPatch, hidden: int) -> Any:
    def timed(_call: Any, *, method: str, **_: Any) -> Any:
        values = np.full(SAMPLES, 8_000.0)
        values[: hidden if method == "device_span" else 0] = np.nan
        return SimpleNamespace(
            interrupted=False,
            warnings=(),
            samples=SAMPLES,
            invalid={"hidden_work": hidden} if method == "device_span" and hidden else {},
            headline=Quantity(f"{method}_ns", "events", values.data, 32.0, {}),
        )

    monkeypatch.setattr("fairlap.engine.cuda.stream_calls.time_on_stream", timed)
    monkeypatch.setattr(COMPLETION, lambda _device, first=None: first)
    contestant: Any = SimpleNamespace(
        stream=SimpleNamespace(how="a callback", find=lambda _: 7), device=0, done=lambda _: None
    )
    return device_quantities(contestant, lambda: None, seconds=1.0, samples=None, calls_per_sample=1)


@pytest.mark.parametrize(("hidden", "measured"), [(0, True), (82, True), (83, False), (827, False), (829, False)])
def test_samples_that_happened_to_be_over_in_time_are_no_figure(
    monkeypatch: pytest.MonkeyPatch, hidden: int, measured: bool
) -> None:
    """On an H100 a process of JAX had 827 of 829 samples hidden; the other two read as 7.9 us."""
    found = quantities(monkeypatch, hidden)
    assert ("device_span_ns" in found.measured) is measured
    assert ("device_span_ns" in found.absent) is not measured
    assert measured or f"in {hidden} of 829 samples" in found.absent["device_span_ns"]
    assert {"context_span_ns", "kernel_sum_ns"} <= set(found.measured)


def test_a_call_ends_with_the_wait_of_its_framework_or_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind JAX's own wait, one for the device added up to 0.09 ms on an H100: no loop by hand has both."""
    waited_for: list[int] = []
    monkeypatch.setattr(COMPLETION, lambda device: lambda _: waited_for.append(device))
    held = Contestant(lambda _: lambda: None, None, lambda _: {}, lambda: {}, {})
    wait = with_completion(held, 1).done
    assert wait is not None
    wait(None)
    assert waited_for == [1]
    assert with_completion(replace(held, done=print), 1).done is print


def test_what_makes_later_launches_slower_is_measured_last(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(quantities(monkeypatch, 0).measured) == ["device_span_ns", "kernel_sum_ns", "context_span_ns"]

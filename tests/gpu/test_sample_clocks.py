"""The clock of a real GPU at each sample, and what a part of the L2 cache set aside for persisting lines changes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.engine.cuda.stream_measurement import StreamMeasurement
from fairlap.machine.hardware.gpu import gpus
from fairlap.meters.sample_clocks import SampleClocks, cycles_of

_PERSISTING = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE


def test_a_loaded_device_runs_at_a_clock_between_its_lowest_and_its_highest(torch: Any, stream: Any) -> None:
    left, right = (torch.randn(4096, 4096, device="cuda") for _ in range(2))
    with SampleClocks() as clocks:
        clocks.start(0)
        measured = clocks.applied(time_on_stream(lambda: torch.mm(left, right), stream=stream, seconds=2.0))
    assert isinstance(measured, StreamMeasurement)
    if clocks.absent:
        pytest.skip(f"its clock is not known: {clocks.absent}")
    most_mhz = max(gpu.most_sm_mhz or 0 for gpu in gpus().devices)
    assert measured.sm_mhz is not None
    assert 0 < measured.sm_mhz.min() <= measured.sm_mhz.max() <= most_mhz
    cycles = cycles_of(measured)
    assert cycles is not None
    assert cycles == pytest.approx(measured.median_ns * np.median(measured.sm_mhz) / 1e3, rel=0.05)


@pytest.fixture
def set_aside(torch: Any) -> Iterator[int]:
    """Set a part of the cache aside in PyTorch's context, which is current, through the driver itself."""
    driver, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
    driver.cuCtxGetLimit(ctypes.byref(size), _PERSISTING)
    before = size.value
    if driver.cuCtxSetLimit(_PERSISTING, ctypes.c_size_t(4 << 20)):
        pytest.skip("no part of the cache can be set aside here")
    yield 4 << 20
    driver.cuCtxSetLimit(_PERSISTING, ctypes.c_size_t(before))


@pytest.mark.usefixtures("set_aside")
def test_cold_samples_reset_what_persists_and_are_no_faster_than_warm_ones(torch: Any, stream: Any) -> None:
    source, target = torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    cold = time_on_stream(lambda: target.copy_(source), stream=stream, samples=200, cache="flush")
    warm = time_on_stream(lambda: target.copy_(source), stream=stream, samples=200, calls_per_sample=1)
    assert cold.settings["cache"].endswith("persisting lines reset")
    assert cold.calls_per_sample == 1
    assert cold.median_ns > warm.median_ns, f"{warm}\n{cold}"

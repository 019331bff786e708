"""Events of a faked device on a sampler's clock. The fake's clock is not the real one, so anchors enclose them."""

from __future__ import annotations

import ctypes
import os

import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.engine.cuda_libraries import DeviceFailed
from fairlap.engine.event_timeline import EventTimeline
from fairlap.engine.telemetry import Sampler
from fairlap.errors import InvalidRequest


def recorded(fake: ctypes.CDLL) -> int:
    event = ctypes.c_void_p()
    assert fake.cuEventCreate(ctypes.byref(event), 0) == 0
    assert fake.cuEventRecord(event, None) == 0
    assert event.value is not None
    return event.value


@on_fakes
def test_an_event_lies_between_the_anchors_around_it() -> None:
    machine = Machine()
    fake = ctypes.CDLL(os.environ["FAIRLAP_LIBCUDA"])
    sampler = Sampler(nvml_library="/nowhere/nvml.so")
    before_ns = sampler.mark(1)
    timeline = EventTimeline()
    machine.kernel(1000)
    event = recorded(fake)
    machine.kernel(1000)
    timeline.anchor()
    after_ns = sampler.mark(2)
    moment = timeline.time_of(event)
    assert before_ns < moment.time_ns < after_ns
    assert 0 < moment.uncertainty_ns < after_ns - before_ns
    assert timeline.anchors == 2
    assert timeline.anchor_if_older(3600.0) is False
    assert timeline.drift_ppm[1] > 0


@on_fakes
def test_what_cannot_be_placed_is_an_error_in_words() -> None:
    machine = Machine()
    timeline = EventTimeline()
    machine.fail("cuEventRecord", 1)
    with pytest.raises(DeviceFailed, match="cuEventRecord"):
        timeline.anchor()
    with pytest.raises(InvalidRequest):
        EventTimeline(device=7)

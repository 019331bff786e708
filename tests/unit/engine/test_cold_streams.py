"""A cold cache on a stream, by rotating arguments or by flushing it, against the fake driver."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from cuda_on_fakes import Machine, on_fakes, timed
from fairlap.engine.cuda.request import Rotate
from fairlap.errors import InvalidRequest


@on_fakes
def test_rotation_takes_every_set_of_arguments_in_turn() -> None:
    machine = Machine()
    taken: list[int] = []

    def work(length_ns: int) -> None:
        taken.append(length_ns)
        machine.kernel(length_ns)

    result = timed(machine, work, cache=Rotate([(1000,), (2000,), (3000,)]), calls_per_sample=3)
    assert np.allclose(result.device_span_ns, 2000, atol=0.01)
    assert taken[:6] == [1000, 2000, 3000, 1000, 2000, 3000]
    assert result.settings["cache"] == "rotated over 3 sets of arguments, of unknown size"
    assert "W_ROTATION_UNKNOWN" in {notice.code for notice in result.warnings}


L2 = 50 << 20  # of the fake device


class OnDevice:
    """As far as its memory is concerned, an array on a device."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.nbytes = nbytes
        self.__cuda_array_interface__ = {"data": (address, False), "version": 3}


def rotated(*spans: tuple[int, int]) -> Rotate:
    return Rotate([(OnDevice(address, nbytes),) for address, nbytes in spans])


@on_fakes
def test_a_rotation_that_fits_into_the_cache_is_refused_before_a_call() -> None:
    machine = Machine()
    calls: list[int] = []

    def work(_: object) -> None:
        calls.append(machine.kernel(10000))

    for spans in (((0, L2 // 2), (L2, L2 // 2 - 1)), ((0, L2 - 1), (0, L2 - 1))):  # the second is one memory twice
        with pytest.raises(InvalidRequest) as caught:
            timed(machine, work, cache=rotated(*spans))
        assert (caught.value.code, calls) == ("E_ROTATION", [])


@on_fakes
def test_a_rotation_of_less_than_three_times_the_cache_is_noticed() -> None:
    machine = Machine()
    for spans, warned in (
        (((0, L2), (0, L2 - 1)), True),  # one memory twice
        (((0, 2 * L2), (L2, 2 * L2 - 1)), True),  # half of each is the other's
        (((0, L2), (L2, L2), (2 * L2, L2)), False),
    ):
        result = timed(machine, lambda _: machine.kernel(10000), cache=rotated(*spans))
        assert ("W_ROTATION_SMALL" in {notice.code for notice in result.warnings}) is warned


@on_fakes
def test_arguments_of_every_set_do_not_make_the_cache_cold() -> None:
    machine = Machine()
    weights = OnDevice(0, 4 * L2)
    sets = [(weights, OnDevice(place * L2, 1 << 20)) for place in (8, 9, 10)]
    result = timed(machine, lambda *_: machine.kernel(10000), cache=Rotate(sets))
    assert Rotate(sets).rotated_bytes() == 3 << 20
    assert "W_ROTATION_SMALL" in {notice.code for notice in result.warnings}
    assert result.settings["cache"] == "rotated over 3 sets of arguments, 203 MiB, 4.1 times the L2 cache"


@on_fakes
def test_a_flushed_cache_is_named_with_its_size() -> None:
    machine = Machine()
    result = timed(machine, lambda: machine.kernel(4000), cache="flush")
    assert np.allclose(result.device_span_ns, 4000, atol=0.01)
    assert result.settings["cache"] == "flushed before each sample with 100 MiB, 2.0 times the L2 cache"


@on_fakes
def test_lines_that_persist_are_reset_before_each_cold_sample() -> None:
    """CUDA documents that a reset takes effect on return of its call, so nothing may run that restores such lines."""
    machine = Machine()
    machine.cuda.fake_cuda_set_aside_for_persisting.argtypes = (ctypes.c_int, ctypes.c_uint64)
    machine.cuda.fake_cuda_resets_while_busy.restype = ctypes.c_int64
    machine.cuda.fake_cuda_set_aside_for_persisting(0, 8 << 20)
    for cache in ("flush", rotated((0, 2 * L2), (2 * L2, 2 * L2))):
        machine.cuda.fake_cuda_reset_call_counts()
        result = timed(machine, lambda *_: machine.kernel(40_000), cache=cache, calls_per_sample="auto")
        assert result.settings["cache"].endswith(", persisting lines reset")
        assert machine.cuda.fake_cuda_call_count(b"cuCtxResetPersistingL2Cache") >= result.samples
        assert (machine.cuda.fake_cuda_resets_while_busy(), result.calls_per_sample) == (0, 1)

"""The feeder's way to a device, seen from Python against the fake driver. What lies on the fake device is memory."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.engine import Batch, Feeder, FeedingFailed, LinkFailed
from fairlap.errors import InvalidRequest

SAMPLES = np.arange(100 * 16, dtype=np.int64).reshape(100, 16)
CUDA = 2


def copied_on(machine: Machine, batch: Batch, stream: int) -> Any:
    """Copy the batch on the consumer's stream into an array, which is filled once the stream gets there."""
    out = np.zeros(batch.shape, np.int64)
    copy = machine.cuda.cuMemcpyDtoHAsync_v2
    copy.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint64)
    assert copy(out.ctypes.data, batch.pointer, batch.nbytes, stream) == 0
    return out


@on_fakes
def test_batches_reach_a_consumer_that_runs_ahead_whole_and_in_order() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_cost(b"cuEventQuery", 20_000)
    with Feeder(SAMPLES, batch=8, slots=2, device="cuda:0") as feeder:
        arrived = []
        for batch in feeder:
            capsule = batch.__dlpack__(stream=machine.stream, max_version=(1, 0))
            machine.kernel(50_000)
            arrived.append(copied_on(machine, batch, machine.stream))
            del capsule
            batch.release([machine.stream])
        machine.synchronize()
        np.testing.assert_array_equal(np.concatenate(arrived), SAMPLES)
        assert feeder.stalls.link_ns is not None
    stalls = feeder.stalls
    parts = stalls.consumer_ns + stalls.source_ns + stalls.staging_ns + (stalls.link_ns or 0) + stalls.no_slot_ns
    assert parts == pytest.approx(stalls.wall_ns, rel=0.01)
    del feeder, batch
    assert machine.outstanding() == 0
    assert machine.cuda.fake_cuda_outstanding(b"host_registrations") == 0


@on_fakes
def test_copies_are_hidden_behind_the_work_of_a_consumer_that_runs_ahead_and_never_with_one_slot() -> None:
    for slots, work_ns, least, most in ((1, 1_000_000, 0.0, 0.0), (4, 10_000_000, 0.99, 1.0)):
        machine = Machine()
        machine.cuda.fake_cuda_set_cost(b"cuEventQuery", 200_000)  # time passes while the feeder's threads look
        with Feeder(SAMPLES, batch=8, slots=slots, epochs=10, last="drop", device="cuda:0") as feeder:
            assert feeder.copy_times is None
            feeder.time_copies()
            for batch in feeder:
                batch.__dlpack__(stream=machine.stream)
                machine.kernel(work_ns)
                batch.release()
            machine.synchronize()
            times = feeder.copy_times
        assert times is not None
        assert (times.lost, times.without_stream) == (0, 0)
        assert times.copies >= 100
        assert least <= times.hidden_ns / times.copied_ns <= most + 1e-6
        del batch, feeder


@on_fakes
def test_in_host_memory_there_are_no_copies_to_time() -> None:
    with Feeder(SAMPLES, batch=8) as feeder:
        feeder.time_copies()
        assert feeder.copy_times is None


@on_fakes
def test_the_memory_node_of_the_slots_is_the_one_of_the_device_or_not_known() -> None:
    """Where the kernel has the fake device's address, it is a device of this machine."""
    Machine()
    file = Path("/sys/bus/pci/devices/0000:01:00.0/numa_node")
    node = int(file.read_text()) if file.exists() else -1
    with Feeder(SAMPLES, batch=8, device="cuda:0") as on_device, Feeder(SAMPLES, batch=8) as on_host:
        assert on_device.host_node in (None, *([node] if node >= 0 else []))
        assert on_host.host_node is None


@on_fakes
def test_a_batch_says_where_it_lies_and_takes_both_generations_of_dlpack() -> None:
    machine = Machine()
    with Feeder(SAMPLES, batch=8, device="cuda") as feeder:
        batch = feeder.next()
        assert batch is not None
        assert batch.__dlpack_device__() == (CUDA, 0)
        for stream in (None, -1, 1, 2, machine.stream):
            assert '"dltensor"' in repr(batch.__dlpack__(stream=stream))
            versioned = batch.__dlpack__(stream=stream, max_version=(1, 0), dl_device=(CUDA, 0))
            assert '"dltensor_versioned"' in repr(versioned)
        for refused in (0, "1", 1.0, True):
            with pytest.raises(ValueError, match="stream"):
                batch.__dlpack__(stream=refused)
        for elsewhere in ((1, 0), (CUDA, 1)):
            with pytest.raises(BufferError, match="device"):
                batch.__dlpack__(dl_device=elsewhere)
        batch.wait()
        lying_there = np.frombuffer(ctypes.string_at(batch.pointer, batch.nbytes), np.int64)
        np.testing.assert_array_equal(lying_there.reshape(8, 16), SAMPLES[:8])
        batch.release()


@on_fakes
def test_failures_of_the_device_are_one_line_each() -> None:
    machine = Machine()
    with pytest.raises(InvalidRequest, match="5"):
        Feeder(SAMPLES, batch=8, device="cuda:5")
    machine.fail("cuMemAlloc_v2", 1, 2)
    with pytest.raises(FeedingFailed, match=r"cuMemAlloc .*CUDA_ERROR_OUT_OF_MEMORY"):
        Feeder(SAMPLES, batch=8, device="cuda:0")
    feeder = Feeder(SAMPLES, batch=8, slots=1, device="cuda:0")
    batch = feeder.next()
    assert batch is not None
    with pytest.raises(LinkFailed):
        batch.__dlpack__(stream=0xDEAD0)
    with pytest.raises(LinkFailed):
        batch.release([0xDEAD0])
    assert not batch.released
    machine.fail("cuMemcpyHtoDAsync_v2", 1)
    batch.release()
    with pytest.raises(FeedingFailed, match=r"batch 1 .*cuMemcpyHtoDAsync"):
        feeder.next()
    feeder.close()


@on_fakes
def test_a_feeder_forgotten_with_a_batch_lent_leaves_nothing_behind_when_the_batch_goes() -> None:
    machine = Machine()
    feeder = Feeder(SAMPLES, batch=8, device="cuda:0")
    batch = feeder.next()
    assert batch is not None
    capsule = batch.__dlpack__(stream=machine.stream)
    del feeder, batch
    assert machine.cuda.fake_cuda_outstanding(b"device_allocations") == 1
    del capsule
    assert machine.outstanding() == 0

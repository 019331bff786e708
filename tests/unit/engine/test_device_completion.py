"""When a device is done, and on which stream a call works, against the fake driver and the fake CUPTI."""

from __future__ import annotations

import threading

import pytest
from cuda_on_fakes import ILLEGAL_ADDRESS, Machine, on_fakes
from fairlap.engine import time_calls
from fairlap.engine.cuda.device_completion import device_completion, own_stream, stream_used_by
from fairlap.engine.cuda.streams import stream_of
from fairlap.engine.measurement import CallableRaised
from fairlap.errors import InvalidRequest, NotAvailable


def pending(machine: Machine) -> int:
    return int(machine.cuda.fake_cuda_pending_work(0))


@on_fakes
def test_a_call_is_complete_when_every_stream_of_the_device_is() -> None:
    machine = Machine()
    other = machine.new_stream()

    def call() -> None:
        machine.kernel(1000)
        machine.kernel(5000, stream=other)

    left: list[int] = []
    wait = device_completion(0)

    def done(result: object) -> None:
        wait(result)
        left.append(pending(machine))

    result = time_calls(call, done=done, samples=10, warmup=0, calls_per_sample=1)
    assert result.headline.name == "wall_ns"
    assert left == [0] * 10
    assert "host_issue_ns" in result.quantities


@on_fakes
def test_the_wait_needs_no_current_context_and_leaves_none() -> None:
    machine = Machine()
    machine.kernel(1000)
    found: list[int] = []

    def elsewhere() -> None:
        machine.cuda.fake_cuda_make_current(0)
        device_completion(0)(None)
        found.extend([pending(machine), machine.cuda.fake_cuda_current_context()])

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [0, 0]
    assert machine.outstanding() == 0


@on_fakes
def test_the_wait_is_for_the_device_that_is_named() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_device_count(2)
    second = machine.cuda.fake_cuda_activate_primary_context(1)
    stream = machine.cuda.fake_cuda_create_stream(second, 1)
    machine.kernel(10**9)
    machine.kernel(1000, stream=stream)
    device_completion(1)(None)
    assert machine.cuda.fake_cuda_pending_work(stream) == 0
    assert machine.cuda.fake_cuda_pending_work(machine.stream) == 1
    device_completion(0)(None)
    assert pending(machine) == 0


@on_fakes
def test_the_frameworks_own_wait_comes_first() -> None:
    machine = Machine()
    seen: list[int] = []

    def own(result: int) -> None:
        seen.append(result)
        machine.kernel(4000)  # what a framework enqueues late

    device_completion(0, own)(7)
    assert seen == [7]
    assert pending(machine) == 0


@on_fakes
def test_an_error_of_the_device_ends_the_timing_with_its_name() -> None:
    machine = Machine()
    wait = device_completion(0)
    machine.fail("cuCtxSynchronize", 3, ILLEGAL_ADDRESS)
    with pytest.raises(CallableRaised, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        time_calls(lambda: machine.kernel(10), done=wait, samples=10, warmup=0, calls_per_sample=1)


@on_fakes
def test_a_device_that_nothing_has_used_is_not_started() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_device_count(2)
    with pytest.raises(InvalidRequest, match="device 1"):
        device_completion(1)


@on_fakes
def test_the_stream_of_a_call_is_found_by_its_launches() -> None:
    for function in (b"cuLaunchKernel", b"cuLaunchKernel_ptsz", b"cuLaunchKernelEx", b"cuGraphLaunch"):
        machine = Machine()
        machine.cuda.fake_cuda_set_launch_function(function)
        assert stream_used_by(lambda: machine.kernel(1000), 0) == machine.stream  # noqa: B023
        assert stream_of(machine.stream).address == machine.stream
        assert machine.cupti.fake_cupti_outstanding(b"subscribers") == 0
        assert pending(machine) == 0


@on_fakes
def test_calls_of_the_driver_that_launch_nothing_do_not_count() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_launch_function(b"cuMemcpyHtoDAsync_v2")
    with pytest.raises(NotAvailable, match="no kernel"):
        stream_used_by(lambda: machine.kernel(1000), 0)


@on_fakes
def test_the_default_stream_of_a_thread_is_not_the_legacy_one() -> None:
    machine = Machine()
    assert stream_used_by(lambda: machine.kernel(1000, stream=0), 0) == 0
    machine.cuda.fake_cuda_set_launch_function(b"cuLaunchKernel_ptsz")
    assert stream_used_by(lambda: machine.kernel(1000, stream=0), 0) == 2


@on_fakes
def test_work_on_two_streams_or_on_none_has_no_stream_to_time() -> None:
    machine = Machine()
    other = machine.new_stream()

    def on_both() -> None:
        machine.kernel(1000)
        machine.kernel(1000, stream=other)

    with pytest.raises(NotAvailable) as two:
        stream_used_by(on_both, 0)
    assert f"{other:#x}" in str(two.value)
    with pytest.raises(NotAvailable, match="no kernel"):
        stream_used_by(lambda: None, 0)


@on_fakes
def test_launches_on_another_device_do_not_count() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_device_count(2)
    second = machine.cuda.fake_cuda_activate_primary_context(1)
    stream = machine.cuda.fake_cuda_create_stream(second, 1)

    def call() -> None:
        machine.kernel(1000)
        machine.cuda.fake_cuda_make_current(second)
        machine.kernel(1000, stream=stream)
        machine.cuda.fake_cuda_make_current(machine.context)

    assert stream_used_by(call, 1) == stream


@on_fakes
def test_a_call_that_raises_gives_cupti_back() -> None:
    machine = Machine()
    with pytest.raises(ZeroDivisionError):
        stream_used_by(lambda: 1 // 0, 0)
    assert machine.cupti.fake_cupti_outstanding(b"subscribers") == 0


@on_fakes
def test_a_profiler_that_came_first_is_named() -> None:
    machine = Machine()
    machine.cupti.fake_cupti_set_held_by_another(1)
    with pytest.raises(NotAvailable, match="CUPTI"):
        stream_used_by(lambda: machine.kernel(1000), 0)


@on_fakes
def test_a_stream_of_our_own_is_a_stream_like_any_other_and_goes_with_its_object() -> None:
    machine = Machine()
    stream = own_stream(0)
    assert stream_of(stream).address == stream.address
    assert machine.kernel(1000, stream=stream.address) == 0
    device_completion(0)(None)
    assert machine.outstanding() == 2
    del stream
    assert machine.outstanding() == 0

"""Timing on a stream, from Python, against the fake driver."""

from __future__ import annotations

import gc
import json
import os
import signal
import threading

import numpy as np
import pytest
from cuda_on_fakes import Machine, on_fakes, timed
from fairlap.engine import floor, measure
from fairlap.engine.cuda.libraries import DeviceFailed
from fairlap.engine.cuda.request import Rotate
from fairlap.engine.measurement import CallableRaised
from fairlap.errors import InvalidRequest, NotAvailable


@on_fakes
def test_a_kernel_is_timed_to_the_tick_and_the_result_names_everything_in_force() -> None:
    machine = Machine()
    result = timed(machine, lambda: machine.kernel(2560))
    assert np.allclose(result.device_span_ns, 2560, atol=0.01)
    assert result.headline.name == "device_span_ns"
    assert result.settings["gate"] == "stream_wait"
    assert result.settings["guard"] == "context_event"
    assert result.settings["cache"] == "warm"
    assert "stream_wait gate" in result.headline.method
    assert (result.stopped_by, result.samples, result.calls_per_sample) == ("samples", 20, 1)
    assert {"event_quantum_ns", "empty_pair_ns", "record_cost_ns", "launch_cost_ns"} <= set(result.headline.floor)
    assert (result.host_issue_ns > 0).all()
    assert machine.outstanding() == 0


@on_fakes
def test_samples_are_numpy_arrays_over_the_same_memory_and_outlive_the_result() -> None:
    machine = Machine()
    result = timed(machine, lambda: machine.kernel(1000))
    values = result.device_span_ns
    assert not values.flags.owndata
    assert not values.flags.writeable
    assert np.shares_memory(values, result.quantity("device_span_ns").values)
    del result
    gc.collect()
    assert np.allclose(values, 1000, atol=0.01)


@on_fakes
def test_measure_takes_a_stream_and_prints_what_a_person_reads() -> None:
    machine = Machine()
    result = measure(lambda: machine.kernel(12_345_000), stream=machine.stream, samples=10, warmup=1, name="k")
    text = str(result)
    assert "device_span" in text
    assert "12.3" in text
    assert "events on stream 0x" in text
    assert json.loads(json.dumps(result.to_dict(raw=True)))["quantities"]["device_span_ns"]["samples_ns"]


@on_fakes
def test_a_graph_is_replayed_without_the_callable() -> None:
    machine = Machine()
    calls: list[int] = []

    def work() -> list[int]:
        calls.append(machine.kernel(4000))
        return calls

    result = timed(machine, work, graph=True)
    assert np.allclose(result.device_span_ns, 4000, atol=0.01)
    assert len(calls) == 4
    assert result.settings["graph"] == "1 node"
    assert machine.outstanding() == 0


@on_fakes
def test_a_callable_that_cannot_be_captured_is_refused_with_the_reason() -> None:
    machine = Machine()
    with pytest.raises(NotAvailable, match="synchron"):
        timed(machine, lambda: (machine.kernel(4000), machine.synchronize()), graph=True)
    with pytest.raises(NotAvailable, match="default stream"):
        timed(machine, lambda: machine.kernel(4000, stream=0), graph=True, stream=0)


@on_fakes
def test_kernel_sum_names_kernels_streams_and_the_last_sample() -> None:
    machine = Machine()
    other = machine.new_stream()

    def work() -> None:
        machine.kernel(1000, "one")
        machine.kernel(3000, "two", other)

    result = timed(machine, work, method="kernel_sum")
    assert np.allclose(result.kernel_sum_ns, 4000, atol=0.01)
    assert result.headline.name == "kernel_sum_ns"
    assert result.kernels["two"].count == 20
    assert len(result.streams) == 2
    assert result.stream_handed_over in result.streams
    assert {activity.name for activity in result.last_sample} == {"one", "two"}
    assert "W_OTHER_STREAMS" in {notice.code for notice in result.warnings}
    assert result.quantity("gap_ns").values.shape == (20,)


@on_fakes
def test_a_profiler_that_came_first_is_a_clear_refusal() -> None:
    machine = Machine()
    machine.cupti.fake_cupti_set_held_by_another(1)
    with pytest.raises(NotAvailable, match="CUPTI"):
        timed(machine, lambda: machine.kernel(1000), method="kernel_sum")


@on_fakes
def test_hidden_streams_are_timed_by_their_context() -> None:
    machine = Machine()
    result = timed(machine, lambda: machine.kernel(7000), stream="hidden", method="context_span")
    assert np.allclose(result.quantity("context_span_ns").values, 7000, atol=0.01)
    assert result.settings["stream"] == "every stream of the context"
    assert result.absent["device_span_ns"]


@on_fakes
def test_samples_with_hidden_work_are_nan_and_counted() -> None:
    machine = Machine()
    other = machine.new_stream()
    result = timed(machine, lambda: (machine.kernel(1000), machine.kernel(100_000_000, "hidden", other)))
    assert np.isnan(result.device_span_ns).all()
    assert result.invalid == {"hidden_work": 20}
    codes = {notice.code for notice in result.warnings}
    assert {"W_HIDDEN_WORK", "W_WORK_ELSEWHERE", "W_GATE_FALLBACK", "W_FEW_SAMPLES"} <= codes


@on_fakes
def test_a_call_that_waits_for_the_device_is_timed_without_a_gate_and_says_so() -> None:
    machine = Machine()
    result = timed(machine, lambda: (machine.kernel(5000), machine.synchronize()), gate_timeout_s=0.05)
    assert result.settings["gate"] == "none"
    assert np.allclose(result.device_span_ns, 5000, atol=0.01)
    assert any(notice.code == "W_GATE_FALLBACK" and "waits for the device" in notice.text for notice in result.warnings)


@on_fakes
def test_an_exception_carries_the_samples_before_it() -> None:
    machine = Machine()
    calls: list[int] = []

    def work() -> None:
        calls.append(machine.kernel(1000))
        if len(calls) == 10:
            raise RuntimeError("no more")

    with pytest.raises(CallableRaised) as raised:
        timed(machine, work)
    assert raised.value.result.samples == 5
    assert isinstance(raised.value.__cause__, RuntimeError)
    assert gc.isenabled()
    assert machine.outstanding() == 0


@on_fakes
def test_a_cuda_error_carries_the_samples_before_it() -> None:
    machine = Machine()
    calls: list[int] = []

    def work() -> None:
        calls.append(machine.kernel(1000))
        if len(calls) == 10:
            machine.fail("cuEventRecord", 3)

    with pytest.raises(DeviceFailed, match="CUDA_ERROR_ILLEGAL_ADDRESS") as failed:
        timed(machine, work)
    assert failed.value.result is not None
    assert failed.value.result.samples >= 5
    assert np.allclose(failed.value.result.device_span_ns, 1000, atol=0.01)


@on_fakes
def test_ctrl_c_ends_the_run_with_the_samples_so_far() -> None:
    machine = Machine()
    calls: list[int] = []

    def work() -> None:
        calls.append(machine.kernel(1000))
        if len(calls) == 10:
            os.kill(os.getpid(), signal.SIGINT)

    result = timed(machine, work)
    assert result.interrupted
    assert 0 < result.samples < 20
    assert "W_INTERRUPTED" in {notice.code for notice in result.warnings}


@on_fakes
def test_ctrl_c_is_heard_while_the_device_does_not_answer() -> None:
    machine = Machine()
    calls: list[int] = []

    def work() -> None:
        calls.append(machine.kernel(1000 if len(calls) < 9 else 10**15))

    interrupt = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    result = timed(machine, work, timeout_s=120.0)
    assert result.interrupted
    assert np.allclose(result.device_span_ns, 1000, atol=0.01)


@on_fakes
def test_other_threads_run_while_the_device_is_waited_for() -> None:
    ticks, timeout_s = 0, 0.25
    while ticks <= 20 and timeout_s < 10:  # a busy machine gives the other thread fewer turns
        machine = Machine()
        hung, over = threading.Event(), threading.Event()
        calls: list[int] = []

        def tick(hung: threading.Event = hung, over: threading.Event = over) -> None:
            nonlocal ticks
            ticks = 0
            hung.wait()
            while not over.wait(0.005):
                ticks += 1

        def work(machine: Machine = machine, hung: threading.Event = hung, calls: list[int] = calls) -> None:
            if len(calls) == 9:
                hung.set()
            calls.append(machine.kernel(1000 if len(calls) < 9 else 10**15))

        timeout_s *= 2
        ticker = threading.Thread(target=tick)
        ticker.start()
        with pytest.raises(DeviceFailed) as failed:
            timed(machine, work, timeout_s=timeout_s)
        over.set()
        ticker.join()
        assert failed.value.result is not None
        assert failed.value.result.samples == 5
    assert ticks > 20


@on_fakes
def test_a_dead_stream_is_refused_before_anything_runs() -> None:
    machine = Machine()
    dead = machine.new_stream()
    machine.cuda.fake_cuda_destroy_stream(dead)
    calls = [1]
    for stream in (dead, 0x1230, 3):
        with pytest.raises(InvalidRequest):
            timed(machine, calls.clear, stream=stream)
    assert calls == [1]


@on_fakes
def test_a_completion_is_waited_for_outside_the_gate() -> None:
    machine = Machine()
    waited: list[object] = []

    def done(value: object) -> None:
        waited.append(value)
        machine.synchronize()

    result = timed(machine, lambda: machine.kernel(1000), done=done)
    assert len(waited) == 24
    assert result.settings["gate"] == "stream_wait"
    assert np.allclose(result.device_span_ns, 1000, atol=0.01)


@on_fakes
def test_what_the_callable_returns_is_given_back() -> None:
    machine = Machine()

    class Output:
        alive = 0

        def __init__(self) -> None:
            Output.alive += 1

        def __del__(self) -> None:
            Output.alive -= 1

    def work() -> Output:
        machine.kernel(1000)
        return Output()

    for options in ({}, {"graph": True}, {"method": "kernel_sum"}, {"cache": Rotate([(), ()])}):
        timed(machine, work, **options)
        assert Output.alive == 0


@on_fakes
def test_a_measurement_inside_a_measured_callable_is_refused() -> None:
    machine = Machine()
    with pytest.raises(CallableRaised):
        timed(machine, lambda: timed(machine, lambda: None))


@on_fakes
def test_the_floor_lists_each_device_with_how_it_was_measured() -> None:
    Machine()
    devices = floor()["cuda"]
    assert devices is not None
    assert len(devices) == 1
    for name, how in devices[0]["how"].items():
        assert devices[0][name] >= 0
        assert how
    assert devices[0]["event_quantum_ns"] > 0
    json.dumps(devices)


@on_fakes
def test_many_samples_take_eight_bytes_each_and_leave_nothing_behind() -> None:
    machine = Machine()
    for _ in range(3):
        result = timed(machine, lambda: machine.kernel(1000), samples=5_000)
        assert result.quantity("device_span_ns").values.nbytes == 8 * 5_000
    assert machine.outstanding() == 0

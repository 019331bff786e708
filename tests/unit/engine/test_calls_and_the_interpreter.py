"""What ends a measured loop early, and what it leaves of the interpreter's collector, threads and children."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import signal
import sys
import threading

import fairlap
import pytest
from counted_calls import counted
from fairlap.engine import MeasurementInProgress, time_calls
from fairlap.engine.measurement import Measurement


def test_an_exception_carries_the_samples_so_far() -> None:
    with pytest.raises(fairlap.CallableRaised, match="ValueError") as caught:
        time_calls(counted(limit=20), samples=100, warmup=0)
    assert caught.value.result.samples == 20
    assert caught.value.result.stopped_by == "raised"
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_exception_in_the_completion_carries_the_samples_so_far() -> None:
    with pytest.raises(fairlap.CallableRaised) as caught:
        time_calls(lambda: 0, done=lambda _: counted(limit=0)(), samples=100, warmup=0)
    assert caught.value.result.samples == 0


def test_an_exception_while_freeing_the_result_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rude:
        def __del__(self) -> None:
            raise RuntimeError("not heard")

    unheard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: unheard.append(unraisable.exc_value))
    assert time_calls(Rude, samples=3, warmup=0).samples == 3
    assert len(unheard) == 3


@pytest.mark.parametrize("ends_by_raising", [False, True])
def test_the_garbage_collector_is_paused_and_put_back(ends_by_raising: bool) -> None:
    seen: list[bool] = []

    def call() -> None:
        seen.append(gc.isenabled())
        if ends_by_raising and len(seen) == 2:
            raise ValueError

    try:
        paused = time_calls(call, samples=3, warmup=0).collector_paused
    except fairlap.CallableRaised as error:
        paused = error.result.collector_paused
    assert paused
    assert not any(seen)
    assert gc.isenabled()


def test_the_collector_is_left_alone_on_request() -> None:
    seen: list[bool] = []
    result = time_calls(lambda: seen.append(gc.isenabled()), samples=3, warmup=0, pause_gc=False)
    assert all(seen)
    assert not result.collector_paused


def test_ctrl_c_stops_at_the_next_call_and_returns_what_was_sampled() -> None:
    call = counted()

    def interrupting() -> None:
        call()
        if call.calls == 10:  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGINT)

    result = time_calls(interrupting, samples=1000, warmup=0)
    assert result.interrupted
    assert result.samples in (9, 10)  # the signal may be seen inside the tenth call or right after it
    assert "W_INTERRUPTED" in {notice.code for notice in result.warnings}


def test_ctrl_c_in_the_first_call_leaves_out_how_long_samples_and_calls_took() -> None:
    def endless() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

    result = time_calls(endless, samples=1000)
    assert (result.samples, result.warm_up.calls, result.warm_up.first_call_ns) == (0, 0, None)
    assert "0.000 ns" not in str(result)


def test_ctrl_c_stops_a_builtin_that_never_looks_for_signals() -> None:
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = time_calls(math.sqrt, args=(2.0,), seconds=20)
    timer.join()
    assert result.interrupted
    assert result.elapsed_s < 10


def test_ctrl_c_stops_a_native_function() -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = time_calls(ctypes.CDLL(None).getpid, seconds=20, warmup=0, calls_per_sample=1000)
    timer.join()
    assert result.interrupted
    assert result.samples > 0
    assert result.elapsed_s < 10


def test_an_exception_from_a_signal_handler_is_not_mistaken_for_ctrl_c() -> None:
    def on_alarm(number: int, frame: object) -> None:
        raise TimeoutError("alarm")

    before = signal.signal(signal.SIGALRM, on_alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(fairlap.CallableRaised, match="TimeoutError") as caught:
            time_calls(math.sqrt, args=(2.0,), seconds=20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught.value.result.elapsed_s < 10


def test_measuring_inside_a_measured_callable_is_refused() -> None:
    with pytest.raises(fairlap.CallableRaised) as caught:
        time_calls(lambda: time_calls(counted(), samples=1), samples=2, warmup=0)
    assert isinstance(caught.value.__cause__, MeasurementInProgress)


def test_measuring_from_two_threads_at_once_is_refused_and_the_first_goes_on() -> None:
    inside, tried = threading.Event(), threading.Event()
    refused: list[BaseException] = []

    def other() -> None:
        inside.wait()
        try:
            time_calls(counted(), samples=1, warmup=0)
        except MeasurementInProgress as error:
            refused.append(error)
        tried.set()

    thread = threading.Thread(target=other)
    thread.start()

    def call() -> None:
        inside.set()
        tried.wait()

    result = time_calls(call, samples=20, warmup=0)
    thread.join()
    assert result.samples == 20
    assert len(refused) == 1


def test_measuring_works_from_another_thread() -> None:
    results: list[Measurement] = []
    thread = threading.Thread(target=lambda: results.append(time_calls(counted(), samples=10, warmup=0)))
    thread.start()
    thread.join()
    assert results[0].samples == 10


def test_other_python_threads_run_while_native_code_is_timed() -> None:
    turns = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal turns
        while not stop.is_set():
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = turns
    result = time_calls(ctypes.CDLL(None).getpid, seconds=0.2)
    during = turns - before
    stop.set()
    thread.join()
    assert result.settings["call"] == "native"
    assert during > 1000


def measured_in_the_child() -> Measurement:
    return time_calls(counted(), samples=2, warmup=0)


def test_a_child_forked_in_a_measured_call_owes_nothing_to_the_parents_measurement() -> None:
    def fork() -> int:
        child = os.fork()
        if child == 0:
            try:
                measured_in_the_child()
            except MeasurementInProgress:
                os._exit(3)
            os._exit(0)
        return os.waitpid(child, 0)[1]

    statuses: list[int] = []
    time_calls(lambda: statuses.append(fork()), samples=1, warmup=0)
    assert statuses == [0]

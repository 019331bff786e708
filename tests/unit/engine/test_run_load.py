"""Requests are issued on time, served in order, stamped natively, and a load ends as it was asked to."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.engine import MeasurementInProgress
from fairlap.engine.load import (
    Decision,
    NativeService,
    Worker,
    constant_arrivals_ns,
    random_arrivals_ns,
    run_load,
)
from fairlap.errors import InvalidRequest
from machine_marks import needs_proc
from numpy.typing import NDArray

MS = 1e6


def nothing() -> None:
    pass


def test_a_seed_draws_the_same_arrivals_again_and_another_seed_others() -> None:
    assert (random_arrivals_ns(100, 100, seed=1) == random_arrivals_ns(100, 100, seed=1)).all()
    assert random_arrivals_ns(100, 100, seed=1)[0] != random_arrivals_ns(100, 100, seed=2)[0]


def test_arrivals_and_services_of_one_seed_are_independent() -> None:
    gaps_ns = np.diff(random_arrivals_ns(20_000, 1000, seed=5))
    service = NativeService(mean_ns=1e6, kind="exponential", seed=5).length_ns(gaps_ns.size)
    assert abs(np.corrcoef(gaps_ns, service)[0, 1]) < 4 / gaps_ns.size**0.5


def test_constant_arrivals_begin_at_zero_and_end_before_the_time_is_over() -> None:
    assert constant_arrivals_ns(4, 1).tolist() == [0, 0.25e9, 0.5e9, 0.75e9]
    assert constant_arrivals_ns(0.5, 1).tolist() == [0]


def test_random_arrivals_have_exactly_the_rate_that_was_asked_for_however_short_the_load() -> None:
    for seed in range(20):
        due_ns = random_arrivals_ns(30, 100, seed)
        assert due_ns.size == 30
        assert (np.diff(due_ns) >= 0).all()
        assert 0 <= due_ns[0] < due_ns[-1] < 0.3e9


def test_random_arrivals_scatter_like_a_poisson_process_of_their_number() -> None:
    gaps_ns = np.diff(random_arrivals_ns(50_000, 1000, seed=3))
    assert gaps_ns.mean() == pytest.approx(1e6, rel=0.001)
    assert gaps_ns.std() == pytest.approx(gaps_ns.mean(), rel=0.03)
    firsts_ns = [random_arrivals_ns(10, 1000, seed)[0] for seed in range(400)]
    assert np.mean(firsts_ns) == pytest.approx(10e6 / 11, rel=0.2)  # the first of ten of uniform places


def test_each_request_runs_the_call_of_its_item_and_waits_for_its_completion() -> None:
    called: list[int] = []
    waited: list[int] = []

    def call(item: int) -> int:
        called.append(item)
        return item

    worker = Worker([lambda item=item: call(item) for item in range(3)], done=waited.append)  # type: ignore[misc]
    items = [2, 0, 1, 1, 0]
    result = run_load(constant_arrivals_ns(1000, 0.005), items, [worker], warm_up=False)
    assert called == items
    assert waited == items
    assert (result.worker == 0).all()
    assert (result.due_ns <= result.issued_ns).all()
    assert (result.issued_ns <= result.started_ns).all()
    assert (result.started_ns <= result.completed_ns).all()
    assert (result.latency_ns <= result.elapsed_ns).all()
    assert not result.gave_up


def test_a_batch_call_gets_the_items_of_its_group() -> None:
    groups: list[list[int]] = []
    worker = Worker([nothing] * 10, batch_call=lambda items: groups.append(items.tolist()))
    items = np.array([7, 1, 2, 9, 4, 4, 3])
    result = run_load(np.zeros(7), items, [worker], largest_batch=4, longest_wait_ns=300 * MS, warm_up=False)
    assert groups == [[7, 1, 2, 9], [4, 4, 3]]
    assert result.group.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert result.started_ns[6] >= 300 * MS


def test_a_request_alone_in_its_group_runs_the_call_of_its_item() -> None:
    groups: list[Any] = []
    called: list[int] = []
    worker = Worker([lambda: called.append(0)], batch_call=groups.append)
    run_load([0.0], [0], [worker], largest_batch=4, warm_up=False)
    assert (called, groups) == ([0], [])


def test_kept_results_are_looked_at_after_their_completion_by_request() -> None:
    kept: list[tuple[int, Any]] = []
    worker = Worker([lambda: "answer"])
    run_load(np.zeros(6), np.zeros(6, int), [worker], kept=[1, 4], keep=lambda *both: kept.append(both))
    assert kept == [(1, "answer"), (4, "answer")]


def test_the_time_of_keeping_is_not_part_of_the_latency_of_its_request() -> None:
    result = run_load([0.0, 0.0], [0, 0], [Worker([nothing])], kept=[0], keep=lambda *_: time.sleep(0.2), warm_up=False)
    assert result.started_ns[1] - result.completed_ns[0] >= 200 * MS


def test_latency_counts_from_when_a_request_was_due_so_a_stalled_service_cannot_hide_its_queue() -> None:
    stalls = iter([0.4])
    worker = Worker([lambda: time.sleep(next(stalls, 0))])
    result = run_load(constant_arrivals_ns(200, 0.05), np.zeros(10, int), [worker], warm_up=False)
    assert (result.latency_ns >= 400 * MS - result.due_ns).all()
    assert (result.issued_ns < result.completed_ns[0]).all()


@needs_proc
def test_a_load_has_no_thread_but_its_workers_so_none_wakes_during_a_call() -> None:
    """Count the threads during a call.

    A thread that issued requests and woke the worker added 20 to 50 µs to each request, and took time from calls where
    it had no core of its own.
    """
    threads: list[int] = []

    def call() -> None:
        threads.append(len(list(Path("/proc/self/task").iterdir())))

    before = len(list(Path("/proc/self/task").iterdir()))
    run_load(random_arrivals_ns(5, 1000, seed=4), np.zeros(5, int), [Worker([call])])
    assert set(threads) == {before + 1}


def test_workers_serve_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=120)
    result = run_load([0.0, 0.0], [0, 0], [Worker([both.wait]), Worker([both.wait])], warm_up=False)
    assert sorted(result.worker.tolist()) == [0, 1]
    assert result.started_ns.max() < result.completed_ns.min()


@pytest.mark.parametrize(("bound_ns", "decided"), [(1.0, "missed"), (1e12, "met")])
def test_a_decision_ends_the_load(bound_ns: float, decided: str) -> None:
    missed_at = np.array([99, 99, 2], np.uint32)
    met_at = np.array([-1, -1, 0], np.int32)
    arrivals_ns = constant_arrivals_ns(1000, 100)
    result = run_load(
        arrivals_ns,
        np.zeros(arrivals_ns.size, int),
        [Worker([nothing])],
        decision=Decision(bound_ns, missed_at, met_at),
    )
    assert result.decided == decided
    assert np.isfinite(result.completed_ns).sum() == 2
    assert np.isnan(result.issued_ns[-1])
    assert result.worker[-1] == result.group[-1] == -1


@pytest.mark.parametrize("where", ["call", "done", "keep", "batch"])
def test_an_exception_ends_the_load_and_is_raised(where: str) -> None:
    def fail(*_: object) -> None:
        raise LookupError(where)

    calls = [fail if where == "call" else nothing]
    worker = Worker(calls, batch_call=fail, done=fail if where == "done" else None)
    batch = 2 if where == "batch" else 1
    with pytest.raises(LookupError, match=where):
        run_load(
            np.zeros(4),
            np.zeros(4, int),
            [worker],
            largest_batch=batch,
            longest_wait_ns=5000 * MS if where == "batch" else 0,
            kept=[0],
            keep=fail if where == "keep" else None,
            warm_up=False,
        )
    assert np.isfinite(run_load([0.0], [0], [Worker([nothing])]).completed_ns).all()


def test_the_warm_up_serves_the_first_request_and_the_first_group_once() -> None:
    seen: list[Any] = []
    worker = Worker([lambda: seen.append(0), lambda: seen.append(1)], batch_call=lambda items: seen.append(list(items)))
    run_load([0.0, 0.0, 0.0], [1, 0, 1], [worker], largest_batch=3, longest_wait_ns=5000 * MS)
    assert seen == [1, [1, 0, 1], [1, 0, 1]]


def test_what_is_not_completed_when_the_load_gives_up_is_nan() -> None:
    for give_up_s in (0.1, 0.4, 1.6, 6.4):  # a busy machine may begin or end a call too late for a short one
        lengths = iter([0.0, 1.4 * give_up_s])
        worker = Worker([lambda lengths=lengths: time.sleep(next(lengths))])  # type: ignore[misc]
        result = run_load([0.0, 0.0, 0.0], [0, 0, 0], [worker], give_up_ns=1e9 * give_up_s, warm_up=False)
        assert result.gave_up
        if np.isfinite(result.completed_ns[0]) and result.left_in_call == 0:
            break
    assert np.isfinite(result.completed_ns).tolist() == [True, False, False]
    assert result.worker.tolist() == [0, 0, -1]
    assert result.left_in_call == 0


def test_a_call_that_does_not_return_is_left_and_the_next_load_runs() -> None:
    release = threading.Event()
    left = threading.Event()

    def hang() -> None:
        release.wait()
        left.set()

    result = run_load([0.0], [0], [Worker([hang])], give_up_ns=300 * MS, warm_up=False)
    assert result.gave_up
    assert result.left_in_call == 1
    assert np.isfinite(run_load([0.0], [0], [Worker([nothing])]).completed_ns).all()
    release.set()
    assert left.wait(10)
    assert np.isnan(result.completed_ns).all()


def run_program(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.sanitized
def test_a_thread_left_in_a_call_does_not_disturb_the_end_of_the_program() -> None:
    done = run_program("""
        import time
        from fairlap.engine.load import Worker, run_load

        class SlowToGo:
            def __del__(self):
                time.sleep(0.8)  # while the interpreter is finalized, the call returns

        run_load([0.0], [0], [Worker([lambda: time.sleep(0.5)])], give_up_ns=1e8, warm_up=False)
        kept_until_the_end = SlowToGo()
        print("end")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.sanitized
def test_ctrl_c_ends_the_load_when_the_running_call_returns_and_keeps_what_was_completed() -> None:
    done = run_program("""
        import os, signal, time
        import numpy as np
        from fairlap.engine.load import Worker, constant_arrivals_ns, run_load

        arrivals_ns = constant_arrivals_ns(1000, 100)
        calls = iter(range(10**9))

        def call():
            if next(calls) == 20:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.3)

        result = run_load(arrivals_ns, np.zeros(arrivals_ns.size, int), [Worker([call])], warm_up=False)
        print(result.interrupted, np.isfinite(result.completed_ns).sum() >= 21, np.isnan(result.issued_ns[-1]))
        print(result.left_in_call)
    """)
    assert (done.returncode, done.stdout) == (0, "True True True\n0\n")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_an_exception_of_another_signal_handler_is_raised() -> None:
    def on_alarm(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, on_alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(TimeoutError):
            run_load([0.0, 30e9], [0, 0], [Worker([nothing])])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_load_inside_a_load_is_refused() -> None:
    def call() -> None:
        run_load([0.0], [0], [Worker([nothing])])

    with pytest.raises(MeasurementInProgress):
        run_load([0.0], [0], [Worker([call])])


def test_a_known_service_takes_its_time_for_each_request() -> None:
    service = NativeService(mean_ns=0.2 * MS, kind="exponential", seed=11)
    arrivals_ns = np.zeros(50)
    result = run_load(arrivals_ns, np.zeros(50, int), [service])
    served_ns = result.completed_ns - result.started_ns
    assert (served_ns >= service.length_ns(50) - 100).all()  # ns: the steps of the clock
    assert served_ns.size == 50


def test_no_request_is_completed_before_the_queue_of_the_drawn_arrivals_and_services_allows_it() -> None:
    service = NativeService(mean_ns=0.2 * MS, kind="exponential", seed=3)
    due_ns = random_arrivals_ns(400, 4000, seed=3)
    result = run_load(due_ns, np.zeros(due_ns.size, int), [service])
    work_ns = np.cumsum(service.length_ns(due_ns.size))
    before_ns = np.append(0.0, work_ns[:-1])
    earliest_ns = work_ns + np.maximum.accumulate(due_ns - before_ns)  # Lindley's recursion
    assert (result.completed_ns >= earliest_ns - 100).all()  # ns: the steps of the clock
    assert (result.started_ns[1:] >= result.completed_ns[:-1]).all()


def test_a_sleeping_service_takes_at_least_its_time() -> None:
    result = run_load(np.zeros(5), np.zeros(5, int), [NativeService(MS, by="sleeping")] * 2)
    assert (result.completed_ns - result.started_ns >= MS).all()


def test_a_load_without_requests_ends_at_once() -> None:
    result = run_load(np.empty(0), np.empty(0, int), [Worker([nothing])])
    assert result.due_ns.size == result.completed_ns.size == 0


@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(lambda: run_load([1.0, 0.0], [0, 0], [Worker([nothing])]), id="arrivals descend"),
        pytest.param(lambda: run_load([-1.0], [0], [Worker([nothing])]), id="arrival before the start"),
        pytest.param(lambda: run_load([np.nan], [0], [Worker([nothing])]), id="arrival is no time"),
        pytest.param(lambda: run_load([[0.0]], [0], [Worker([nothing])]), id="two dimensions"),
        pytest.param(lambda: run_load([0.0], [0, 0], [Worker([nothing])]), id="too many items"),
        pytest.param(lambda: run_load([0.0], [0.5], [Worker([nothing])]), id="half an item"),
        pytest.param(lambda: run_load([0.0], [-1], [Worker([nothing])]), id="negative item"),
        pytest.param(lambda: run_load([0.0], [1], [Worker([nothing])]), id="item without a call"),
        pytest.param(lambda: run_load([0.0], [0], []), id="no worker"),
        pytest.param(lambda: run_load([0.0], [0], [Worker([3])]), id="not callable"),  # type: ignore[list-item]
        pytest.param(lambda: run_load([0.0], [0], [Worker([nothing])], largest_batch=0), id="empty batches"),
        pytest.param(lambda: run_load([0.0], [0], [Worker([nothing])], largest_batch=2), id="no batch_call"),
        pytest.param(lambda: run_load([0.0], [0], [Worker([nothing])], kept=[1]), id="keeps what is not there"),
        pytest.param(lambda: run_load([0.0], [0], [Worker([nothing])], give_up_ns=0), id="gives up before it starts"),
        pytest.param(lambda: run_load([0.0], [0], [NativeService(0)]), id="no service time"),
        pytest.param(lambda: random_arrivals_ns(1, 0, 0), id="no rate"),
        pytest.param(lambda: constant_arrivals_ns(1e9, 1e3), id="too many requests"),
        pytest.param(lambda: random_arrivals_ns(1, 1, -1), id="negative seed"),
    ],
)
def test_a_load_that_cannot_run_is_refused_before_it_starts(request_of: Any) -> None:
    with pytest.raises(InvalidRequest):
        request_of()


def test_the_arrays_that_were_given_stay_as_they_are() -> None:
    arrivals_ns: NDArray[np.float64] = np.zeros(2)
    items = np.zeros(2, np.uint32)
    run_load(arrivals_ns, items, [Worker([nothing])])
    items[0] = 1  # still writable
    assert arrivals_ns.tolist() == [0, 0]

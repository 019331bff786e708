"""A rank that hangs or was stopped is given up long before the longest time that a measurement may take."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from fairlap.machine.programs.processes import process_stat
from fairlap.scenarios.calls.latency_messages import Measure, Measured, MeasuredQuantity
from fairlap.scenarios.ranks.ranks_messages import RankLimits
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Hello, Join, Prepare
from fairlap.worker.ranks import ranks as ranks_module
from fairlap.worker.ranks.conductor import Conductor, limit_s
from fairlap.worker.ranks.ranks import Connected, Ranks, TooLate, Trouble
from machine_marks import needs_proc
from processes_seen import wait_until


@pytest.mark.parametrize(("expected_s", "limit"), [(0.4, 60), (3, 60), (10, 200), (100, 600), (float("inf"), 600)])
def test_a_limit_is_generous_and_never_beyond_that_of_any_measurement(expected_s: float, limit: float) -> None:
    assert limit_s(expected_s, 600) == limit


class OfRecordedLimits(Conductor):
    """Its ranks answer at once, with calls of the given time."""

    def __init__(self, call_ns: float) -> None:
        super().__init__(Phases(lambda _: None))
        self.limits: list[float] = []
        self._of_call_ns = call_ns
        self._prepare = Prepare("torch", "m", 8, 1, "w", "i", "c", limits=RankLimits())
        self._ranks: Any = type("TwoRanks", (), {"count": 2, "launched": []})()

    def _asked(self, requests: Sequence[Any], kind: Any, doing: str, within_s: float, expected_s: float = 0) -> Any:
        self.limits.append(within_s)
        values = np.full(requests[0].samples, self._of_call_ns * requests[0].calls_per_sample, "<f8")
        quantity = MeasuredQuantity("wall_ns", len(values), "method", 1.0)
        return [(Measured([quantity], 1, "samples", 1.0, values.nbytes), values.tobytes())] * len(requests)


@pytest.mark.parametrize(("call_ns", "limit"), [(1e6, 60), (4e9, 480)])
def test_the_limit_of_a_measurement_follows_from_its_calls(call_ns: float, limit: float) -> None:
    conductor = OfRecordedLimits(call_ns)
    conductor.measure(Measure(seconds=0.4))
    assert conductor.limits[-1] == pytest.approx(limit)


@pytest.fixture
def rank() -> Iterator[Connected]:
    """Start a process that only sleeps, as if it had joined."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        one, other = socket.socketpair()
        with one, other:
            yield Connected(one, join=Join(0, socket.gethostname(), ""), hello=Hello(1, "python", process.pid))
        process.kill()


@pytest.fixture
def ranks(rank: Connected, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranks]:
    monkeypatch.setattr(ranks_module, "_LOOK_AT_RANKS_EVERY_S", 0.0)
    monkeypatch.setattr(ranks_module, "_LOOK_AT_LAUNCHERS_EVERY_S", 0.01)
    found = Ranks([], socket.create_server(("127.0.0.1", 0)), "token", 1)
    found._connected.append(rank)
    yield found
    found.end()


def signalled(rank: Connected, sent: signal.Signals, state: str) -> None:
    assert rank.hello is not None
    pid = rank.hello.pid
    os.kill(pid, sent)
    wait_until(lambda: (stat := process_stat(pid)) is None or (stat.state == "T") == (state == "T"))


@needs_proc
def test_a_rank_that_stays_stopped_is_trouble_and_one_that_continues_is_not(rank: Connected, ranks: Ranks) -> None:
    for sent, state in ((signal.SIGSTOP, "T"), (signal.SIGCONT, "S")):
        signalled(rank, sent, state)
        for _ in range(100):  # until a look fits into so short a wait, which is not long enough for trouble
            with pytest.raises(TooLate):
                ranks.answers(Measured, time.monotonic() + 0.02)
            if (rank.looks_stopped > 0) == (state == "T"):
                break
        assert (rank.looks_stopped > 0) == (state == "T")
    signalled(rank, signal.SIGSTOP, "T")
    with pytest.raises(Trouble):
        ranks.answers(Measured, time.monotonic() + 120)
    assert ranks.stopped() == [rank]


@needs_proc
def test_a_process_of_another_host_is_not_looked_for_here(rank: Connected, ranks: Ranks) -> None:
    rank.join = Join(0, "another-host", "")
    signalled(rank, signal.SIGSTOP, "T")
    with pytest.raises(TooLate):
        ranks.answers(Measured, time.monotonic() + 0.3)
    assert rank.looks_stopped == 0

"""With programs that keep every core busy, no ratio is claimed that is a property of the load."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from busy_programs import busy_programs
from fairlap.cli import cli
from fairlap.launch.worker_process import WorkerProcess
from fairlap.results.results import results_of
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.calls.latency_messages import Measure
from fairlap.scenarios.learning.training_messages import Epoch
from fairlap.scenarios.load.load_messages import OfferLoad
from fairlap.store.runs.run_file import load_run
from grades import grades

CORES = sorted(os.sched_getaffinity(0))[:2]
CONTESTANTS = ("torch", "onnxruntime")
CALLABLES = """
import hashlib, threading

DATA, PHASES = bytes(200_000), 10

def work():
    hashlib.sha256(DATA).digest()

def threads_that_meet():
    barrier = threading.Barrier(2)
    def run():
        for _ in range(PHASES):
            work()
            barrier.wait()
    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

def one_thread():
    for _ in range(2 * PHASES):
        work()
"""

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(600),
    pytest.mark.skipif(len(CORES) < 2, reason="needs two cores; `make test-thorough` runs it"),
]


def raced(work: str, contestants: Sequence[str], folder: Path) -> dict[str, Any]:
    """Race on two cores, and return the work's result in the JSON."""
    command = [sys.executable, "-m", "fairlap", "compare", work, "--on", ",".join(contestants)]
    ran = subprocess.run(
        [*command, "--blocks", "6", "--threads", "2", "--json", "--quiet"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, CORES),
    )
    return dict(json.loads(ran.stdout)["work_results"][0])


@pytest.mark.parametrize("work", ["convnet", "callable"])
def test_the_ratio_of_a_busy_machine_is_that_of_a_quiet_one_or_is_not_claimed(work: str, tmp_path: Path) -> None:
    if work == "callable":
        (tmp_path / "own_calls.py").write_text(CALLABLES)
        contestants = [f"python:call=own_calls.{name}:path={tmp_path}" for name in ("threads_that_meet", "one_thread")]
    else:
        contestants = list(CONTESTANTS)
        for name in contestants:
            pytest.importorskip(name, reason="`make test-thorough` installs it and runs this")
    with busy_programs(2):
        loaded = raced(work, contestants, tmp_path)
    if loaded["no_verdict_code"]:
        assert loaded["no_verdict_code"] == "E_BUSY_MACHINE"
        assert not loaded["comparisons"]
        return
    quiet = raced(work, contestants, tmp_path)
    [under_load], [alone] = loaded["comparisons"], quiet["comparisons"]
    low, high = under_load["interval"]
    assert low <= alone["ratio"] <= high


@contextmanager
def busy_while(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs on both cores that run while requests of this kind are served, and at no other time.

    Two for each core: of three runnable threads on two cores, a lone one waits for a third of its time only.
    """
    with busy_programs(4) as started:
        for pid in started:
            os.kill(pid, signal.SIGSTOP)
        ask = WorkerProcess.ask

        def asked(worker: WorkerProcess, message: Any, *, within_s: float) -> Any:
            if not isinstance(message, kind):
                return ask(worker, message, within_s=within_s)
            for pid in started:
                os.kill(pid, signal.SIGCONT)
            try:
                return ask(worker, message, within_s=within_s)
            finally:
                for pid in started:
                    os.kill(pid, signal.SIGSTOP)

        monkeypatch.setattr(WorkerProcess, "ask", asked)
        yield


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return grades(tmp_path / "grades.csv", 20_000)


def raced_beside(kind: type[Any], scenario: str, table: Path, monkeypatch: pytest.MonkeyPatch) -> WorkResult:
    for module in ("torch", "jax"):
        pytest.importorskip(module, reason="`make test-thorough` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(table.parent))
    file = table.parent / "run.json"
    raced = ("tabular", "--on", "torch,jax", "--blocks", "3", "--threads", "2", "--seconds", "0.4s")
    asked = {
        "to a score": ("compare", "--mode", "train", "--train-on", f"{table}:grade", "--to-score", "80%"),
        "load": ("load", "--p90", "100ms", "--trial", "0.3s"),
    }
    command, *options = asked[scenario]
    bound_to = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    try:
        with busy_while(kind, monkeypatch), pytest.raises(SystemExit):
            cli.main([command, *raced, *options, "--no-store", "--quiet", "-o", str(file)], standalone_mode=False)
    finally:
        os.sched_setaffinity(0, bound_to)
    [found] = results_of(load_run(file)).work_results
    return found


@pytest.mark.parametrize(("scenario", "judged"), [("to a score", Epoch), ("load", OfferLoad)])
def test_a_neighbour_of_epochs_or_trials_alone_keeps_their_ratio_from_being_claimed(
    scenario: str, judged: type[Any], table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = raced_beside(judged, scenario, table, monkeypatch)
    assert found.basis.judged.period == "after_turns"
    assert found.basis.no_verdict_code == "E_BUSY_MACHINE", found.basis.stolen
    assert not found.comparisons
    assert set(found.basis.stolen.by_contestant) == {"torch", "jax"}


@pytest.mark.parametrize("scenario", ["to a score", "load"])
def test_a_neighbour_of_single_calls_alone_keeps_no_other_ratio_from_being_claimed(
    scenario: str, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = raced_beside(Measure, scenario, table, monkeypatch)
    assert found.basis.stolen_in("turns").refusal(threads=2)[1] == "E_BUSY_MACHINE"
    if found.basis.stolen.refusal(threads=2)[1]:
        pytest.skip("other programs use this machine")
    assert found.basis.no_verdict_code == ""
    assert found.comparisons

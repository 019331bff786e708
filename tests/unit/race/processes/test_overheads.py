"""The overhead of a call is measured once for each contestant, and that nothing else depends on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec
import pytest
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.call_cost import CallCost
from fairlap.race.processes.bench import Overheads
from fairlap.scenarios.asking import Ask
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.untimed.profile_messages import Overhead, OverheadMeasured
from fairlap.worker.protocol import Hello
from machine_marks import needs_proc
from small_races import plan_of, raced
from workers_of_fake import Files, environment

pytestmark = [pytest.mark.usefixtures("example"), needs_proc]


def finished(contestants: str, *, blocks: int = 2) -> list[ProcessResult]:
    processes = raced(plan_of(contestants, blocks=blocks))
    assert {process.outcome for process in processes} == {"finished"}
    return processes


def when_asked_for_overhead(monkeypatch: pytest.MonkeyPatch, do: Callable[[WorkerProcess], NoReturn]) -> None:
    asked = WorkerProcess.ask

    def ask(worker: WorkerProcess, request: Ask[Any], *, within_s: float) -> Any:
        return do(worker) if isinstance(request, Overhead) else asked(worker, request, within_s=within_s)

    monkeypatch.setattr(WorkerProcess, "ask", ask)


def test_one_process_of_each_contestant_times_an_empty_call_and_still_knows_its_memory() -> None:
    processes = finished("example,example:slow")
    assert all(process.call_cost is not None for process in processes)
    assert all("peak" in process.memory.bytes for process in processes)
    for process in processes:
        assert (process.overhead_ns is not None) == (process.block == 0)
    slow = next(process for process in processes if process.contestant == "example:slow")
    assert slow.overhead_ns is not None
    assert 2e6 < slow.overhead_ns < 10 * slow.headline_ns  # measured at other times, when the machine may be busier


@pytest.mark.slow
def test_a_worker_that_is_lost_over_it_keeps_its_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(worker: WorkerProcess) -> NoReturn:
        worker.end()
        raise WorkerLost("crash", "ended by SIGSEGV")

    when_asked_for_overhead(monkeypatch, lost)
    [process] = finished("example", blocks=1)
    assert process.headline_ns > 0
    assert process.headline.samples > 0
    assert process.overhead_ns is None
    assert process.overhead_absent == "ended by SIGSEGV"


@pytest.mark.slow
def test_a_program_in_another_language_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(worker: WorkerProcess) -> NoReturn:
        raise AssertionError("asked")

    def greet(worker: WorkerProcess) -> None:
        greeted(worker)
        worker.hello = msgspec.structs.replace(worker.hello, language="c++")

    greeted = WorkerProcess.greet
    when_asked_for_overhead(monkeypatch, never)
    monkeypatch.setattr(WorkerProcess, "greet", greet)
    [process] = finished("example", blocks=1)
    assert process.overhead_ns is None
    assert process.overhead_absent
    assert "peak" in process.memory.bytes


def test_an_adapter_that_cannot_run_the_empty_model_says_so_and_quits_as_usual(tmp_path: Path) -> None:
    files = Files(tmp_path).write()
    with WorkerProcess(python_worker(), environment=environment()) as worker:
        assert isinstance(worker.hello, Hello)
        worker.prepare(files.request(), within_s=60)
        worker.answer("inputs", files.folder / "answer.safetensors", within_s=60)
        worker.measure(samples=10, warmup=1, calls_per_sample=1, within_s=60)
        found = worker.ask(Overhead(), within_s=60)
        ended = worker.quit()
    assert found.call_ns is None
    assert "KeyError" in found.why
    assert "peak" in ended.memory.bytes


class AnswersOverhead:
    """In the place of a worker, whose answers grow."""

    def __init__(self) -> None:
        self.hello = Hello(3, "python", 1)
        self.asked = 0

    def ask(self, _request: Overhead, *, within_s: float) -> OverheadMeasured:
        self.asked += 1
        return OverheadMeasured(call_ns=1000.0 * self.asked)


def test_works_of_one_process_get_the_overhead_of_its_first() -> None:
    plan = plan_of("example,example:slow")
    overheads, worker, found = Overheads(), AnswersOverhead(), []
    for block, (work, before) in enumerate([("a", 0), ("b", 1), ("c", 2), ("d", 0), ("e", 1), ("a", 2)]):
        result = ProcessResult(block, 0, "example", work, "controlled", works_before=before)
        result.call_cost = CallCost(1.0, 1.0, 1)
        assert overheads.measured(cast("WorkerProcess", worker), result, plan)
        found.append(result.overhead_ns)
    assert found == [1000.0, 1000.0, 1000.0, 2000.0, 2000.0, None]
    assert worker.asked == 2

"""What cannot be the work is found by its times, and a busy machine is not mistaken for it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from fairlap.launch.worker_process import Samples, WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.race.equal_work import timed_work
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.timed_work import TimedWork, longer_on_new_inputs
from fairlap.request.work import Work
from fairlap.scenarios.calls.latency_messages import DrawnResult, Measured, MeasuredQuantity
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.worker.protocol import Answered
from small_races import small_plan

MS = 1e6
USUAL_NS = 1 * MS


def new_calls(call_ms: Sequence[float], cpu_ms: Sequence[float | None]) -> list[DrawnResult]:
    return [
        DrawnResult(number, call * MS, cpu_ns=None if cpu is None else cpu * MS)
        for number, (call, cpu) in enumerate(zip(call_ms, cpu_ms, strict=True))
    ]


@pytest.mark.parametrize(
    ("call_ms", "cpu_ms", "longer"),
    [
        ((9, 9, 9), (9, 9, 9), True),
        ((9, 9, 9), (1, 1, 1), False),  # they waited for a core
        ((9, 9, 9), (9, 1, 9), False),
        ((9, 4, 9), (9, 9, 9), False),  # one was quick
        ((9, 9, 9), (None, None, None), True),
        ((9,), (9,), False),  # one call may be ten times as long by chance
        ((11,), (11,), True),
    ],
)
def test_every_call_on_new_inputs_must_take_longer_by_the_clock_and_by_cpu_time(
    call_ms: Sequence[float], cpu_ms: Sequence[float | None], longer: bool
) -> None:
    assert longer_on_new_inputs(new_calls(call_ms, cpu_ms), USUAL_NS, USUAL_NS) is longer


def test_a_worker_that_counts_no_cpu_time_is_judged_by_the_clock() -> None:
    assert longer_on_new_inputs(new_calls((9, 9, 9), (0, 0, 0)), USUAL_NS, 0.0)


class Worker:
    """Takes this long for further calls on new inputs, one after the other."""

    def __init__(self, *call_ms: float, cpu_ms: float | None = None) -> None:
        self._call_ms, self._cpu_s = iter(call_ms), None if cpu_ms is None else cpu_ms / 1e3

    def answer(self, which: str, _path: Path, *, within_s: float, inputs: Path) -> Answered:
        assert which == "data"
        assert set(safetensors.read(inputs)) == {"image"}
        assert within_s > 0
        return Answered(next(self._call_ms) / 1e3, cpu_s=self._cpu_s)


@pytest.fixture
def suspected(tmp_path: Path) -> TimedWork:
    """Its three drawn calls took nine times as long as others."""
    plan = small_plan("torch", Work("mlp", 1), conditions="controlled", seed=0)
    block = plan.blocks[0]
    process = ProcessResult(0, 0, "torch", "mlp", "controlled")
    found = TimedWork(plan, block, process, materials_for(Work("mlp", 1), 0), tmp_path)
    found._on_new_inputs = new_calls((9, 9, 9), (9, 9, 9))
    found._repeated_ns = [np.array([USUAL_NS])]
    return found


def test_one_further_call_that_is_quick_clears_a_contestant(suspected: TimedWork) -> None:
    suspected.require_no_kept_answers(cast(WorkerProcess, Worker(9, 9, 4)))


@pytest.mark.parametrize(("cpu_ms", "cleared"), [(9.0, False), (1.0, True), (None, False)])
def test_further_calls_that_wait_for_a_core_and_compute_no_more_clear_it(
    suspected: TimedWork, cpu_ms: float | None, cleared: bool
) -> None:
    suspected._cpu_s, suspected._calls = USUAL_NS / 1e9, 1
    worker = cast(WorkerProcess, Worker(*[9.0] * 8, cpu_ms=cpu_ms))
    with nullcontext() if cleared else pytest.raises(OtherWork):
        suspected.require_no_kept_answers(worker)


def test_further_calls_that_are_all_slow_disqualify_it(suspected: TimedWork) -> None:
    with pytest.raises(OtherWork) as found:
        suspected.require_no_kept_answers(cast(WorkerProcess, Worker(*[9.0] * 8)))
    assert found.value.code == "E_KEPT_ANSWERS"


KEPT_NS = 70.0


class ShortTurns(Worker):
    """Has turns of these samples, of one call each, in which every call that is not a kept answer uses 6 ms."""

    def __init__(self, *turns_ns: Sequence[float]) -> None:
        super().__init__(*[6.0] * 8)
        self._turns_ns = iter(turns_ns)

    def measure(self, **_limits: object) -> tuple[Measured, Samples]:
        turn_ns = np.array(next(self._turns_ns))
        wall = MeasuredQuantity("wall_ns", len(turn_ns), "clock", 1.0, {})
        counts = {"process_cpu_ns": int((turn_ns > KEPT_NS).sum() * 6 * MS)}
        return Measured([wall], 1, "seconds", turn_ns.sum() / 1e9, 0, counts=counts), {"wall_ns": turn_ns}


@pytest.mark.parametrize("drawn", [1, 3])
@pytest.mark.parametrize("turns_ns", [[[*[KEPT_NS] * 4, 80 * MS, 80 * MS]], [[80 * MS]] * 3 + [[KEPT_NS] * 9]])
def test_few_calls_that_compute_on_a_busy_machine_do_not_hide_that_the_others_are_kept(
    suspected: TimedWork, turns_ns: Sequence[Sequence[float]], drawn: int
) -> None:
    """As of one call in fifty, which takes so long that a turn ends with it."""
    suspected._on_new_inputs = new_calls([80.0] * drawn, [6.0] * drawn)
    suspected._repeated_ns, suspected._wanted = [], 0
    worker = cast(WorkerProcess, ShortTurns(*turns_ns))
    for left in reversed(range(len(turns_ns))):
        suspected.measure(worker, left + 1)
    with pytest.raises(OtherWork) as found:
        suspected.require_no_kept_answers(worker)
    assert found.value.code == "E_KEPT_ANSWERS"


@pytest.mark.parametrize("turns_ns", [[[6 * MS, 80 * MS]], [[80 * MS]] * 3])
def test_slow_calls_of_a_busy_machine_are_no_kept_answers(
    suspected: TimedWork, turns_ns: Sequence[Sequence[float]]
) -> None:
    suspected._on_new_inputs = new_calls([80.0], [6.0])
    suspected._repeated_ns, suspected._wanted = [], 0
    worker = cast(WorkerProcess, ShortTurns(*turns_ns))
    for left in reversed(range(len(turns_ns))):
        suspected.measure(worker, left + 1)
    suspected.require_no_kept_answers(worker)


@pytest.mark.parametrize(
    ("others_s", "own_s", "named"),
    [
        (0.25, 0.9, True),
        (0.15, 0.9, False),
        (0.08, 0.01, True),  # where the machine is busy, they do the work all the same
        (0.01, 0.0, False),  # what looks after a socket now and then
        (0.0, 0.0, False),
    ],
)
def test_processes_that_do_the_work_are_named_however_small_their_share_of_a_busy_machine(
    suspected: TimedWork, others_s: float, own_s: float, named: bool
) -> None:
    suspected._in_others_s, suspected._watched_s = others_s, 1.0
    suspected._cpu_s, suspected._measured_s = own_s / 2, 0.5
    assert [each.code for each in suspected._work_in_others()] == ["W_OTHER_PROCESSES"] * named


@pytest.mark.parametrize(("call_ns", "possible"), [(1000.0, True), (0.001, False)])
def test_a_speed_that_no_machine_reaches_disqualifies(
    suspected: TimedWork, monkeypatch: pytest.MonkeyPatch, call_ns: float, possible: bool
) -> None:
    monkeypatch.setattr(timed_work, "operations_per_second", lambda *, again=False: 5e11)
    timing = Timing(call_ns, call_ns, call_ns, 10, 1, 0, "flat", "clock", 1.0)
    suspected._process.timings = {"wall_ns": timing}
    if possible:
        suspected.require_plausible()
        return
    with pytest.raises(OtherWork) as found:
        suspected.require_plausible()
    assert found.value.code == "E_IMPOSSIBLE_SPEED"

"""Contestants of a block take turns in rounds; where they cannot, they run one after the other and say why."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from fairlap.launch.worker_process import Samples, WorkerProcess
from fairlap.race.left_out import contestants_of
from fairlap.race.planning.plan import Limits, Measuring, Plan
from fairlap.race.processes import turns
from fairlap.race.processes.turn_start import unused_calls
from fairlap.race.race import Race
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from small_races import plan_of, raced

pytestmark = [pytest.mark.sanitized, pytest.mark.usefixtures("example"), needs_proc]


def planned(contestants: str, *, blocks: int = 3, until_decided: bool = True) -> Plan:
    return plan_of(contestants, blocks=blocks, data_seeds=(0, 1), until_decided=until_decided)


@pytest.fixture(scope="module")
def race_of_two(example_of_file: None) -> tuple[list[ProcessResult], dict[int, Samples]]:
    """Race three blocks; the samples are those of a process by its ``id``."""
    kept: dict[int, Samples] = {}
    plan = planned("example,example:slow")
    race = Race(plan, keep=lambda process, samples: kept.update({id(process): samples}))
    race.run()
    return race.processes, kept


def test_every_process_of_a_block_has_its_rounds_and_all_their_calls_are_kept(
    race_of_two: tuple[list[ProcessResult], dict[int, Samples]],
) -> None:
    processes, kept = race_of_two
    assert len(processes) == 6
    for process in processes:
        assert process.outcome == "finished", process.message
        assert len(process.rounds_ns) == 4
        assert process.in_turn_because == ""
        assert "W_ORPHANS" not in {notice.code for notice in process.warnings}
        assert len(kept[id(process)]["wall_ns"]) == process.headline.samples
        assert process.headline_ns == pytest.approx(np.median(process.rounds_ns), rel=0.5)
    slow = [process.headline_ns for process in processes if process.contestant == "example:slow"]
    assert min(slow) > 2e6


def test_the_first_block_starts_alone_and_only_it_says_how_long_a_start_takes(
    race_of_two: tuple[list[ProcessResult], dict[int, Samples]],
) -> None:
    processes, _ = race_of_two
    first = [process for process in processes if process.block == 0]
    later = [process for process in processes if process.block > 0]
    assert {process.started for process in first} == {"alone"}
    assert {process.started for process in later} == {"together"}
    assert all(process.time_to_first_s() for process in first)
    assert {process.time_to_first_s() for process in later} == {None}
    assert [process.caches for process in processes] == ["cold"] * 2 + ["warm"] * 4
    assert {process.data_seed for process in processes} == {0, 1}


@pytest.mark.slow
def test_what_compiles_for_long_starts_its_second_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessResult, "compile_s", lambda process: 2.0 if process.contestant == "example" else None)
    processes = raced(planned("example,example:slow"))
    alone = [(process.block, process.contestant) for process in processes if process.started == "alone"]
    assert sorted(alone) == [(0, "example"), (0, "example:slow"), (1, "example")]


def test_nobody_runs_while_another_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[str] = []
    alive: list[WorkerProcess] = []
    start, measure = WorkerProcess.greet, WorkerProcess.measure

    def greeted(self: WorkerProcess) -> None:
        start(self)
        alive.append(self)

    def measured(self: WorkerProcess, **options: object) -> object:
        for other in alive:
            stat = Path(f"/proc/{other.pid}/stat")
            if stat.exists() and other is not self:
                states.append(stat.read_text().rpartition(")")[2].split()[0])
        return measure(self, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(WorkerProcess, "greet", greeted)
    monkeypatch.setattr(WorkerProcess, "measure", measured)
    raced(planned("example,example:slow,example:loud", blocks=1))
    assert len(states) >= 24
    assert set(states) <= {"T", "Z"}


@pytest.mark.slow
def test_those_that_do_not_fit_into_memory_together_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "available_memory_bytes", lambda: 10**6)
    processes = raced(planned("example,example:slow", blocks=1))
    assert [process.outcome for process in processes] == ["finished"] * 2
    assert all(process.in_turn_because for process in processes)
    assert all(process.rounds_ns == [] for process in processes)
    assert {process.started for process in processes} == {"alone"}


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["crash", "hang-measure", "late-nan", "raises"])
def test_one_that_is_lost_in_a_block_leaves_the_others_their_rounds(variant: str) -> None:
    plan = planned(f"example,example:{variant},example:slow", blocks=1)

    processes = raced(msgspec.structs.replace(plan, limits=Limits(measure_s=3)))
    finished = [process for process in processes if process.outcome == "finished"]
    assert {process.contestant for process in finished} == {"example", "example:slow"}
    assert {len(process.rounds_ns) for process in finished} == {4}


@pytest.mark.slow
def test_a_disqualified_contestant_and_one_that_never_finishes_are_run_no_more() -> None:
    processes = raced(planned("example,example:nan,example:raises", blocks=3))
    ran = [process.contestant for process in processes]
    assert (ran.count("example"), ran.count("example:nan"), ran.count("example:raises")) == (3, 1, 2)


def test_in_a_race_of_a_fixed_length_every_contestant_runs_in_every_block() -> None:
    plan = planned("example,example:nan", until_decided=False)
    lost = ProcessResult(0, 0, "example:nan", plan.works[0].id, "as-found", outcome="disqualified")
    assert set(contestants_of(plan, plan.blocks[2], [lost])) == {"example", "example:nan"}


def test_a_row_says_where_what_its_contestant_leaves_behind_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    greet = WorkerProcess.greet

    def greeted(self: WorkerProcess) -> None:
        greet(self)
        assert self.hello.holds_orphans
        self.hello = msgspec.structs.replace(self.hello, holds_orphans=False)

    monkeypatch.setattr(WorkerProcess, "greet", greeted)
    [process] = raced(planned("example", blocks=1, until_decided=False))
    assert "W_ORPHANS" in {notice.code for notice in process.warnings}


@pytest.mark.slow
def test_a_contestant_whose_first_calls_after_a_pause_take_longer_reads_what_its_other_calls_take() -> None:
    """Two calls of 80 ms after each pause, then calls of 8 ms; a turn lasts for 100 ms.

    Other programs may cause pauses within turns, so one of several attempts counts.
    """
    plan = msgspec.structs.replace(planned("example:cold,example", blocks=1), measuring=Measuring(0.4, rounds=4))
    took_ns = list[float]()
    while not took_ns or (took_ns[-1] >= 40e6 and len(took_ns) < 4):
        [cold] = [process for process in raced(plan) if process.contestant == "example:cold"]
        assert cold.outcome == "finished", cold.message
        assert len(cold.rounds_ns) == 4
        took_ns.append(cold.headline_ns)
    assert 8e6 < took_ns[-1] < 40e6, took_ns


@pytest.mark.parametrize(
    ("call_s", "calls"), [(1e-5, 6), (0.004, 6), (0.014, 5), (0.022, 3), (0.15, 1), (0.17, 0), (2.0, 0)]
)
def test_a_turn_begins_with_calls_that_refill_caches_for_at_most_two_turns(call_s: float, calls: int) -> None:
    assert unused_calls(call_s, turn_s=0.04) == calls

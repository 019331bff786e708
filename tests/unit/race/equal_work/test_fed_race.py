"""A race with data: fed contestants finish with their figures, those that go wrong when fed are found."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result
from fairlap.cli import cli
from fairlap.cli.races import run_race as run_race_module
from fairlap.data import datasets as fed_data
from fairlap.errors import InvalidRequest
from fairlap.launch.memory_groups import GroupsHere
from fairlap.launch.runners import runners_for
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.facts import machine_facts
from fairlap.meters.memory import Memory
from fairlap.race.around_blocks.smallest_memory import Found, Trial, smallest_memory
from fairlap.race.equal_work.fed_check import Feeding
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.planning.plan import Limits, Measuring, Plan
from fairlap.race.planning.plan_reach import allow
from fairlap.race.processes.block_worker import request_for
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.render.outputs import FORMATS
from fairlap.render.text.terminal import text_of
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult, SmallestMemory
from fairlap.store.runs.run_file import load_run, save_run
from fairlap.store.store import open_store
from machine_marks import needs_proc
from small_races import run_race, small_plan

pytestmark = [pytest.mark.sanitized, pytest.mark.usefixtures("example"), needs_proc]

QUICK = Limits(start_s=30, prepare_s=30, answer_s=30, measure_s=30)


def planned(contestants: str, data: str = "synthetic", blocks: int = 1) -> Plan:
    return small_plan(
        contestants,
        Work("mlp", 4),
        blocks=blocks,
        available_cores=tuple(sorted(os.sched_getaffinity(0)))[:1],
        measuring=Measuring(seconds=0.05),
        limits=QUICK,
        data=data,
    )


def run_of(contestants: str, data: str = "synthetic") -> Run:
    running = run_race(planned(contestants, data))
    return Run(running.plan, running.processes, {}, {})


def race(contestants: str, data: str = "synthetic") -> list[ProcessResult]:
    return sorted(run_of(contestants, data).processes, key=lambda process: process.contestant)


@pytest.fixture(scope="module")
def fed(example_of_file: None) -> Run:
    """Race one that is right with those that go wrong only when they are fed."""
    return run_of("example,example:fed-cached,example:fed-shifted,example:fed-not")


@pytest.fixture(scope="module")
def not_fed(example_of_file: None) -> Run:
    return run_of("example", data="")


def process_of(run: Run, contestant: str) -> ProcessResult:
    [process] = [each for each in run.processes if each.contestant == contestant]
    return process


def images(folder: Path, samples: int) -> Path:
    rng = np.random.default_rng(7)
    np.save(folder / "mine.npy", rng.standard_normal((samples, 784), dtype=np.float32))
    return folder / "mine.npy"


def test_a_fed_contestant_has_its_waits_and_every_answer_was_checked(fed: Run) -> None:
    process = process_of(fed, "example")
    assert process.outcome == "finished", process.message
    feeding = process.feeding
    assert feeding is not None
    assert feeding.items == 4 * feeding.calls
    assert process.headline_ns == feeding.wall_ns / feeding.calls
    assert feeding.work_ns + feeding.waited_ns == pytest.approx(feeding.wall_ns)
    checked = {error.when for error in process.errors}
    assert checked == {"before", "changed inputs", "fed batch 0", "fed batch 1", "fed, after", "after"}
    assert all(error.right for error in process.errors)
    assert process.in_force["feed"] == "fairlap"
    assert len(process.in_force["data_hash"]) == 12


def test_a_race_without_data_feeds_nothing(not_fed: Run) -> None:
    [process] = not_fed.processes
    assert process.outcome == "finished", process.message
    assert process.feeding is None
    assert "feed" not in process.in_force


def test_a_users_file_is_fed(tmp_path: Path) -> None:
    [process] = race("example", str(images(tmp_path, 30)))
    assert process.outcome == "finished", process.message
    assert process.feeding is not None


@pytest.mark.parametrize(
    ("variant", "outcome", "says"),
    [
        ("fed-cached", "disqualified", "fed batch 1"),
        ("fed-shifted", "disqualified", "fed batch 0"),
        ("fed-not", "unsupported", "--data"),
    ],
)
def test_a_contestant_that_goes_wrong_only_when_fed_is_not_ranked(
    variant: str, outcome: str, says: str, fed: Run
) -> None:
    assert process_of(fed, "example").outcome == "finished"
    bad = process_of(fed, f"example:{variant}")
    assert bad.outcome == outcome
    assert says in bad.message


def test_one_that_writes_over_its_batch_is_disqualified_for_what_its_pipeline_held() -> None:
    [bad] = race("example:fed-writes")
    assert bad.outcome in ("disqualified", "failed")
    assert "not as the files hold them" in bad.message or "read-only" in bad.message


def test_a_file_that_is_gone_when_the_race_begins_is_told_before_anything_runs(tmp_path: Path) -> None:
    file = images(tmp_path, 30)
    plan = planned("example", str(file))
    file.unlink()
    running = Race(plan)
    with pytest.raises(InvalidRequest, match=r"mine\.npy"):
        running.run()
    assert not running.processes


def test_a_file_that_shrinks_while_it_is_fed_from_ends_the_race_and_blames_no_contestant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = images(tmp_path, 64)
    running = Race(planned("example,example:slow", str(file)))
    measure = WorkerProcess.measure

    def cut_and_measure(worker: WorkerProcess, **wanted: Any) -> Any:
        os.truncate(file, 4096)
        return measure(worker, **wanted)

    monkeypatch.setattr(WorkerProcess, "measure", cut_and_measure)
    running.run()
    assert running.processes == []
    assert running.ended_early.startswith(f"{file} became shorter")


def test_what_the_loss_of_its_data_broke_is_run_again_when_they_are_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = images(tmp_path, 64)
    whole, saved = file.read_bytes(), tmp_path / "run.json"
    plan = planned("example", str(file), blocks=3)
    allow(plan)
    measure, begun = WorkerProcess.measure, count(1)

    def cut_and_measure(worker: WorkerProcess, **wanted: Any) -> Any:
        if next(begun) == 2:
            os.truncate(file, 4096)
        return measure(worker, **wanted)

    monkeypatch.setattr(WorkerProcess, "measure", cut_and_measure)
    assert (
        run_race_module.run_race(plan, run_race_module.RunOutput(files=((saved, FORMATS[".json"]),), quiet=True)) == 1
    )
    assert [(process.block, process.outcome) for process in load_run(saved).processes] == [(0, "finished")]
    file.write_bytes(whole)
    assert fairlap("compare", "--resume", "last", "-o", str(saved)).exit_code == 0
    assert [(process.block, process.outcome) for process in load_run(saved).processes] == [
        (n, "finished") for n in range(3)
    ]


@pytest.mark.parametrize(
    ("harm", "says"),
    [(lambda file: os.truncate(file, 4096), "became shorter"), (Path.unlink, "can no longer be read")],
)
def test_a_race_whose_data_is_lost_ends_once_and_keeps_what_was_measured(
    tmp_path: Path, harm: Callable[[Path], None], says: str
) -> None:
    file = images(tmp_path, 64)
    running = run_race(planned("example,example:slow", str(file)), keep=lambda _process, _samples: harm(file))
    [first] = running.processes
    assert first.outcome == "finished", first.message
    assert running.data_lost == running.ended_early
    assert running.ended_early.startswith(f"{file} {says}")


def test_the_command_says_once_that_data_was_lost_how_to_go_on_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = images(tmp_path, 64)
    monkeypatch.setattr(run_race_module, "_discard", lambda _process, _samples: file.unlink(missing_ok=True))
    output = run_race_module.RunOutput(store=False)
    assert run_race_module.run_race(planned("example,example:slow", str(file)), output) == 1
    told = capsys.readouterr().err
    assert "1 of 2 processes" in told
    assert "No such file" in told
    assert "cannot be resumed" in told
    assert told.count("mine.npy can no longer be read") == 1


def test_a_file_that_changes_under_a_race_does_not_make_one_figure_of_two_sets_of_data(tmp_path: Path) -> None:
    file = images(tmp_path, 64)
    running = Race(planned("example,example:slow", str(file)))
    kept: list[ProcessResult] = []

    def change(process: ProcessResult, _samples: object) -> None:
        kept.append(process)
        np.save(file, np.load(file) + 1)

    running._keep = change
    running.run()
    first, second = kept
    assert first.outcome == "finished", first.message
    assert second.outcome == "failed"
    assert f"{file} changed" in second.message


def test_a_file_that_is_written_anew_with_the_same_samples_is_the_same_data(tmp_path: Path) -> None:
    file = images(tmp_path, 64)
    running = Race(planned("example,example:slow", str(file)))
    running._keep = lambda _process, _samples: np.save(file, np.load(file))
    running.run()
    assert [process.outcome for process in running.processes] == ["finished", "finished"]


@pytest.fixture
def resumable(tmp_path: Path) -> tuple[str, Path]:
    """Store a run whose first block is over, and return its id and the data that it was fed."""
    file = images(tmp_path, 64)
    plan = planned("example", str(file), blocks=2)
    allow(plan)
    running = Race(plan)
    with pytest.raises(KeyboardInterrupt):
        running.run(after_block=_interrupt)
    save_run(tmp_path / "run.json", Run(plan, running.processes, machine_facts(), {}))
    with open_store() as store:
        return store.import_from(tmp_path / "run.json"), file


def _interrupt() -> None:
    raise KeyboardInterrupt


def fairlap(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--quiet"])


def processes_of(run_id: str) -> list[ProcessResult]:
    with open_store(reading=True) as store:
        return store.load(run_id).processes


def test_a_run_is_not_resumed_on_other_data(resumable: tuple[str, Path]) -> None:
    run_id, file = resumable
    before = processes_of(run_id)
    np.save(file, np.load(file) + 1)
    refused = fairlap("compare", "--resume", run_id).exception
    assert isinstance(refused, InvalidRequest)
    assert refused.code == "E_RESUME"
    assert processes_of(run_id) == before


def test_a_run_is_resumed_on_the_data_that_it_was_fed(resumable: tuple[str, Path]) -> None:
    run_id, _ = resumable
    assert fairlap("compare", "--resume", run_id).exit_code == 0
    assert [process.outcome for process in processes_of(run_id)] == ["finished", "finished"]


def test_a_rerun_says_whether_the_data_differ(resumable: tuple[str, Path]) -> None:
    run, file = resumable
    assert "no known change of machine, versions and data" in fairlap("rerun", run).output
    [then] = {process.in_force["data_hash"] for process in processes_of(run)}
    np.save(file, np.load(file) + 1)
    told = fairlap("rerun", run).output
    assert f"fairlap: data {file} {then} -> " in told
    assert "no known change" not in told


def test_data_that_is_not_finite_where_nobody_looked_is_named_and_no_contestant_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.full((30, 784), np.nan, np.float32)
    array[0] = 1
    np.save(tmp_path / "mine.npy", array)
    monkeypatch.setattr(fed_data, "_HASHED_BYTES", array[0].nbytes)
    [process] = race("example", str(tmp_path / "mine.npy"))
    assert process.outcome == "failed"
    assert process.message.endswith("mine.npy has numbers that are not finite; no answer can be checked (fed batch 0)")


@pytest.mark.parametrize("number", [3e38, 3e25], ids=["in the first layer", "in a square"])
def test_finite_data_that_overflow_in_the_model_are_to_blame_and_no_contestant(tmp_path: Path, number: float) -> None:
    np.save(tmp_path / "mine.npy", np.full((30, 784), number, np.float32))
    [process] = race("example", str(tmp_path / "mine.npy"))
    assert process.outcome == "failed"
    assert f"{tmp_path / 'mine.npy'} has numbers for which the model has no answer in float32: " in process.message
    assert "no answer can be checked, so scale the data (fed batch 0)" in process.message


def test_rows_and_the_answer_tell_of_the_feeding(fed: Run) -> None:
    results = results_of(fed, "r")
    [row] = [each for each in results.rows if each.contestant == "example"]
    assert row.data == "synthetic"
    assert row.pipeline_throughput_per_s is not None
    assert row.throughput_per_s is not None
    assert row.waited_share is not None
    assert 0 <= row.waited_share.value < 1
    assert sum(row.stall_shares.values()) == pytest.approx(1)
    assert set(row.stall_shares) == {"work", "reading", "copying", "no free slot"}
    told = text_of(results)
    assert "fed synthetic" in told
    assert "fed by fairlap: " in told
    assert "items/s, waited " in told


def test_rows_of_a_race_without_data_say_why_there_are_no_figures_of_feeding(not_fed: Run) -> None:
    [row] = results_of(not_fed, "r").rows
    assert row.pipeline_throughput_per_s is None
    assert row.absent["waited_share"] == "nothing was fed; see --data"
    assert row.stall_shares == {}


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why the only try of a search failed; there is room enough."""
    why: list[str] = []

    def once(runs: Callable[[int], str], first: int, *_: object) -> Found:
        why.append(runs(first))
        return Found(first, 0, 1)

    monkeypatch.setattr("fairlap.race.around_blocks.smallest_memory.smallest_limit", once)
    return why


def search(contestant: str, scratch: Path) -> None:
    plan = planned(contestant)
    [materials] = [materials_for(work, plan.data_seed) for work in plan.works]
    with ExitStack() as stack:
        [runner] = runners_for(plan.contestants, plan.threads, plan.device, scratch, stack, lambda _: None)
        roomy = Memory({"address_space_peak": 2**33})
        finished = ProcessResult(0, 0, contestant, materials.work.id, "as-found", memory=roomy, elapsed_s=9)
        request, feeding = request_for(plan, materials, runner), Feeding(plan, [materials])
        trial = Trial(plan, plan.blocks[0], materials, runner, request, [finished], scratch, feeding)
        smallest_memory(trial, GroupsHere(None))


@pytest.mark.parametrize(("contestant", "says"), [("example", ""), ("example:fed-shifted", "fed batch 0")])
def test_the_search_for_the_smallest_memory_feeds_its_tries(
    contestant: str, says: str, tmp_path: Path, tried: list[str]
) -> None:
    """One that goes wrong only when it is fed goes wrong in a try, too."""
    search(contestant, tmp_path)
    [why] = tried
    assert says in why
    assert bool(why) == bool(says), why


def test_a_search_for_the_smallest_memory_that_lost_its_data_has_found_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = images(tmp_path, 64)

    def cut_and_search(_trial: Trial) -> SmallestMemory:
        os.truncate(file, 4096)
        return SmallestMemory("address space", None, 2**25, 1, "it fails without a limit")

    monkeypatch.setattr("fairlap.race.around_blocks.after_blocks.smallest_memory", cut_and_search)
    running = run_race(msgspec.structs.replace(planned("example", str(file)), min_memory=True))
    [process] = running.processes
    assert process.finished
    assert process.smallest_memory is None
    assert running.ended_early.startswith(f"{file} became shorter")


def test_a_try_that_lacks_memory_names_its_limit(
    tmp_path: Path, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lack(*_: object) -> None:
        raise WorkerLost("failed", "RuntimeError: can't start new thread (in feed)")

    monkeypatch.setattr("fairlap.race.around_blocks.smallest_memory._run", lack)
    search("example", tmp_path)
    [why] = tried
    limit = round(1.1 * 2**33)
    assert f"{limit:,}" in why
    assert "can't start new thread" in why

"""A race with data: fed contestants finish with their figures, those that go wrong when fed are found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from fairlap.data import datasets as fed_data
from fairlap.launch.memory_groups import GroupsHere
from fairlap.launch.runners import runners_for
from fairlap.launch.worker_lost import WorkerLost
from fairlap.meters.memory import Memory
from fairlap.race.around_blocks.smallest_memory import Found, Trial, smallest_memory
from fairlap.race.equal_work.fed_check import Feeding
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.processes.block_worker import request_for
from fairlap.race.run import Run
from fairlap.render.text.terminal import text_of
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult
from fed_races import images, planned, race, run_of
from machine_marks import needs_proc

pytestmark = [pytest.mark.sanitized, pytest.mark.usefixtures("example"), needs_proc]


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
    assert bad.outcome == "failed" or (bad.outcome, bad.code) == ("disqualified", "E_FEED")  # NumPy may refuse to write


def test_data_that_is_not_finite_where_nobody_looked_is_named_and_no_contestant_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.full((30, 784), np.nan, np.float32)
    array[0] = 1
    np.save(tmp_path / "mine.npy", array)
    monkeypatch.setattr(fed_data, "_HASHED_BYTES", array[0].nbytes)
    [process] = race("example", str(tmp_path / "mine.npy"))
    assert (process.outcome, process.code) == ("failed", "E_REQUEST")
    assert str(tmp_path / "mine.npy") in process.message


@pytest.mark.slow_but("first layer")
@pytest.mark.parametrize("number", [3e38, 3e25], ids=["in the first layer", "in a square"])
def test_finite_data_that_overflow_in_the_model_are_to_blame_and_no_contestant(tmp_path: Path, number: float) -> None:
    np.save(tmp_path / "mine.npy", np.full((30, 784), number, np.float32))
    [process] = race("example", str(tmp_path / "mine.npy"))
    assert (process.outcome, process.code) == ("failed", "E_REQUEST")
    assert str(tmp_path / "mine.npy") in process.message


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


@pytest.mark.slow
@pytest.mark.parametrize(("contestant", "says"), [("example", ""), ("example:fed-shifted", "fed batch 0")])
def test_the_search_for_the_smallest_memory_feeds_its_tries(
    contestant: str, says: str, tmp_path: Path, tried: list[str]
) -> None:
    """One that goes wrong only when it is fed goes wrong in a try, too."""
    search(contestant, tmp_path)
    [why] = tried
    assert says in why
    assert bool(why) == bool(says), why


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

"""The largest batch is found to its resolution, its answers are checked, and no worker takes more than it may."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from fairlap.launch.memory_groups import GroupsHere
from fairlap.launch.resident_limit import ResidentLimit
from fairlap.race.around_blocks import largest_batch
from fairlap.race.around_blocks.largest_batch import search
from fairlap.race.resume import search_is_over
from fairlap.request.work import Mode, Work
from fairlap.results.results import results_of
from fairlap.scenarios.calls.race.inference import Inference
from fairlap.scenarios.process_result import BatchOutcome, BatchTry, LargestBatch
from hypothesis import given, strategies
from machine_marks import needs_proc
from one_block import run_of_one_block

SHARE = 1 / 16
MIB = 2**20


@given(largest=strategies.integers(1, 10**6), first=strategies.integers(1, 64), most=strategies.integers(64, 2**20))
def test_the_batch_found_fits_and_one_larger_by_the_resolution_does_not(largest: int, first: int, most: int) -> None:
    def tried(batch: int) -> BatchTry:
        return BatchTry(batch, "fits") if batch <= largest else BatchTry(batch, "out_of_memory", why="no room")

    found = search(tried, first, most, SHARE)
    assert all(each.batch % first == 0 and each.batch <= most for each in found.tries)
    if largest < first:
        assert (found.batch, found.ended_by, found.why) == (None, "out_of_memory", "no room")
        return
    assert found.batch is not None
    assert found.batch <= largest
    if found.ended_by == "limit":
        assert most - first < found.batch <= most
        return
    assert found.ended_by == "out_of_memory"
    assert found.batch + found.resolution > largest
    assert found.resolution <= max(first, SHARE * found.batch)


def test_a_search_without_time_keeps_the_largest_batch_so_far() -> None:
    def tried(batch: int) -> BatchTry:
        return BatchTry(batch, "fits", 100, 1.0) if batch < 8 else BatchTry(batch, "budget", why="spent")

    found = search(tried, 1, 1024, SHARE)
    assert (found.batch, found.ended_by, found.why) == (4, "budget", "spent")
    assert [each.batch for each in found.tries] == [1, 2, 4, 8]


def test_a_refusal_in_between_is_the_reason_why_the_batch_is_not_larger() -> None:
    def tried(batch: int) -> BatchTry:
        outcome: BatchOutcome = "fits" if batch <= 5 else "refused" if batch == 6 else "out_of_memory"
        return BatchTry(batch, outcome)

    found = search(tried, 1, 1024, SHARE)
    assert (found.batch, found.resolution, found.ended_by) == (5, 1, "refused")


@needs_proc
def test_a_process_that_holds_more_than_its_limit_is_ended() -> None:
    program = "import time\nheld = bytearray(200 * 2**20)\ntime.sleep(60)"
    for limit, is_ended in ((100 * MIB, True), (400 * MIB, False)):
        with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as process:
            with ResidentLimit(process.pid, limit) as watched:
                until_s = time.monotonic() + (120 if is_ended else 0.5)
                while process.poll() is None and time.monotonic() < until_s:
                    time.sleep(0.02)
            assert bool(watched.exceeded) == is_ended
            assert (process.poll() is not None) == is_ended
            process.kill()


@needs_proc
def test_a_process_is_ended_when_the_machine_runs_short() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time\ntime.sleep(60)"], start_new_session=True) as process:
        with ResidentLimit(process.pid, 2**60, least_available_bytes=2**60) as watched:
            process.wait(timeout=120)
        assert watched.exceeded


@pytest.fixture
def example_without_groups(example: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(largest_batch, "groups_here", lambda: GroupsHere(None, "not here"))


def found_for(contestant: str, max_batch: int, mode: Mode = "infer", model: str = "mlp") -> LargestBatch:
    [process] = run_of_one_block(contestant, Work(model, 2, mode), seconds=0.02, max_batch=max_batch).processes
    assert process.largest_batch is not None
    return process.largest_batch


@pytest.mark.usefixtures("example_without_groups")
def test_larger_batches_are_answered_rightly_measured_and_in_the_row() -> None:
    run = run_of_one_block("example", Work("mlp", 2), seconds=0.02, max_batch=7)
    [row] = results_of(run, "r").rows
    assert (row.largest_batch, row.largest_batch_ended_by) == (6, "limit")
    assert row.largest_batch_check == "against the reference"
    assert list(row.memory_by_batch) == list(row.time_per_item_by_batch_ns) == ["2", "4", "6"]
    assert all(peak > MIB for peak in row.memory_by_batch.values())
    assert row.largest_batch_memory_limit_bytes
    assert row.cpu_busy_share is not None
    assert 0 < row.cpu_busy_share.value < 2
    assert row.absent["gpu_busy_share"] == "it ran on the processor"
    assert row.absent["peak_power_w"] == row.absent["mean_power_w"]


@pytest.mark.slow
@pytest.mark.usefixtures("example_without_groups")
def test_memory_that_the_search_may_not_use_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(largest_batch, "available_memory_bytes", lambda: 10 * MIB)
    found = found_for("example", 64)
    assert (found.batch, found.ended_by) == (None, "out_of_memory")
    assert len(found.tries) == 1


@pytest.mark.usefixtures("example_without_groups")
def test_a_wrong_answer_at_a_larger_batch_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the race's items in another order than they were given."""
    part = Inference.copy

    def shifted(side, materials, name, array, number):  # type: ignore[no-untyped-def]
        found = part(side, materials, name, array, number)
        return found[::-1] if number else found

    monkeypatch.setattr(Inference, "copy", shifted)
    found = found_for("example", 4)
    assert (found.batch, found.ended_by) == (2, "refused")


@pytest.mark.usefixtures("example_without_groups")
def test_a_model_without_a_batch_of_items_has_a_reason() -> None:
    found = found_for("python:call=builtins.dict", 8, model="callable")
    assert found.batch is None
    assert found.why
    assert not found.tries


@pytest.mark.slow
@pytest.mark.usefixtures("example_without_groups")
def test_a_run_without_its_largest_batches_is_not_over() -> None:
    run = run_of_one_block("example", Work("mlp", 2), seconds=0.02, max_batch=2)
    assert search_is_over(run.plan, run.processes)
    run.processes[0].largest_batch = None
    assert not search_is_over(run.plan, run.processes)
    [row] = results_of(run, "r").rows
    assert row.largest_batch is None
    assert "--resume" in row.absent["largest_batch"]

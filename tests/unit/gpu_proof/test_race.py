"""The part that races: what it makes of a run file, and the whole of it on a CPU, with real frameworks."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.runs.run_file import save_run
from gpu.proof.parts import race
from gpu.proof.record import WITHOUT, Deadline, PartRecord, read
from runs_for_rows import a_run

BOTH = "torch,torch:compile"


@pytest.fixture
def record(tmp_path: Path) -> PartRecord:
    return PartRecord(tmp_path / "part.json", 7, "made up")


def content_of(record: PartRecord, tmp_path: Path) -> Any:
    record.save()
    return read(tmp_path / "part.json")


def keep(
    record: PartRecord, work: race.RaceWork, tmp_path: Path, spoilt: Callable[[ProcessResult], None] = lambda _: None
) -> None:
    """Keep the race that a run file shows; a contestant that is spoilt has no times."""
    run = a_run(listed=BOTH)
    for process in run.processes:
        spoilt(process)
    save_run(tmp_path / "race.json", run, results_of(run, "a run"))
    race.keep_race(record, work, tmp_path / "race.json")


def disqualified(process: ProcessResult) -> None:
    if process.contestant == "torch:compile":
        process.outcome, process.message = "disqualified", "its answer is off"


def without_cuda(process: ProcessResult) -> None:
    process.outcome, process.message, process.timings = "unsupported", "torch sees 0 CUDA devices here", {}


def with_device_span(process: ProcessResult) -> None:
    process.timings["device_span_ns"] = process.headline
    process.untimed = {"kernel_sum_ns": "libcupti was not found"}


def test_the_headline_of_a_race_is_wall_time_and_the_device_stands_beside_it(
    record: PartRecord, tmp_path: Path
) -> None:
    keep(record, race.PUBLISHED, tmp_path, with_device_span)
    eager, compiled = sorted(record.rows("races"), key=lambda row: str(row["contestant"]))
    assert (eager["contestant"], eager["outcome"]) == ("torch", "finished")
    assert eager["median_ns"] == pytest.approx(2e6, rel=0.01)
    assert eager["device_span_ns"] == eager["median_ns"]
    assert eager["kernel_sum_ns"] is None
    assert "libcupti was not found" in eager["note"]
    assert compiled["median_ns"] == pytest.approx(1e6, rel=0.01)
    [verdict] = record.rows("verdicts")
    assert verdict["ratio"] == pytest.approx(2.0, rel=0.01) or verdict["ratio"] == pytest.approx(0.5, rel=0.01)
    race._ratios(record)
    [ratio] = record.rows("times faster than PyTorch eager")
    assert ratio["ratio"] == pytest.approx(2.0, rel=0.01)
    goals = {goal["goal"]: goal for goal in content_of(record, tmp_path)["goals"]}
    assert goals[f"{race.PUBLISHED.name}: contestants with a wrong answer"]["reached"]
    assert goals[f"{race.PUBLISHED.name}: torch:compile over torch (published: 1.87)"]["reached"]


def test_a_wrong_answer_in_a_race_is_a_goal_that_was_missed(record: PartRecord, tmp_path: Path) -> None:
    keep(record, race.RACES[1], tmp_path, disqualified)
    [goal] = content_of(record, tmp_path)["goals"]
    assert (goal["figure"], goal["reached"]) == (1, False)


def test_a_race_in_which_nothing_ran_is_a_failure_and_its_contestants_race_no_more(
    record: PartRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race, "CONTESTANTS", ("torch", "onnxruntime"))
    with pytest.raises(RuntimeError, match="nothing was raced: torch"):
        keep(record, race.RACES[2], tmp_path, without_cuda)
    assert [name for name in race._here(record) if name == "torch"] == []


@pytest.mark.thorough
@pytest.mark.sanitized
@pytest.mark.timeout(900)
@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="`make test` installs frameworks and runs this")
def test_every_step_of_the_part_is_taken_on_a_cpu(
    record: PartRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the commands that race on a GPU, but for the device, the models and the durations."""
    first, second = race.RaceWork("mlp", 1, "fp32"), race.RaceWork("mlp", 2, "bf16")
    smaller = {
        "DEVICE": "cpu",
        "CONTESTANTS": ("onnxruntime", "torch", "nowhere"),
        "EAGER": "onnxruntime",
        "COMPILED": "torch",
        "RACES": (first, second),
        "PUBLISHED": first,
        "BLOCKS": 1,
        "MEASURED_S": 0.02,
        "AA_BLOCKS": 6,
        "NEIGHBOUR": "tests.support.busy_neighbour",
        "CACHE": tmp_path / "cache",
    }
    for name, value in smaller.items():
        monkeypatch.setattr(race, name, value)
    race.run(record, Deadline(900))
    record.end()
    content = content_of(record, tmp_path)
    assert [each["step"] for each in content["left_out"]] == ["contestant nowhere"], content["reason"]
    races = {(row["race"], row["contestant"]): row for row in content["tables"]["races"]}
    assert races[first.name, "onnxruntime"]["outcome"] == races[first.name, "torch"]["outcome"] == "finished"
    assert races[second.name, "onnxruntime"]["outcome"] == "unsupported"
    assert races[second.name, "torch"]["median_ns"] > 0
    assert all(row["worst_error"] < 1e-2 for row in races.values() if row["outcome"] == "finished")
    assert [row["where"] for row in content["tables"]["A/A"]] == ["", "beside a busy neighbour"]
    assert races["mlp-train-b64-fp32", "torch"]["outcome"] == "finished"
    assert {row["contestant"] for row in content["tables"]["precisions"]} == {"onnxruntime", "torch"}
    assert all(goal["figure"] is not None for goal in content["goals"]), content["goals"]


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_race_that_leaves_no_file_fails_with_the_last_line_that_it_printed(
    record: PartRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race, "CACHE", tmp_path)
    monkeypatch.setattr(race, "CONTESTANTS", ("torch",))
    monkeypatch.setenv("FAIRLAP_LIBCUDA", str(tmp_path / "none.so"))
    with pytest.raises(RuntimeError, match=r"none\.so"):
        race._raced(record, Deadline(60), race.RACES[0])
    with pytest.raises(RuntimeError, match=r"none\.so"):
        race._against_itself(record, Deadline(60))


def test_what_is_to_be_done_without_does_not_race(record: PartRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime without CUDA was raced on an H100, although the proof was told to do without it."""
    monkeypatch.setattr(race, "find_spec", lambda _: True)
    assert race._here(record) == list(race.CONTESTANTS)
    monkeypatch.setenv(WITHOUT, "torch,onnxruntime")
    assert race._here(record) == ["jax", "tensorflow:graph"]

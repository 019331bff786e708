"""Races from file to answer agree with a loop by hand, and unequal work is refused or disqualified by name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import fairlap
import numpy as np
import photo_classifier
import pytest
from command_line import output, refusal
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_reach import reach_of
from fairlap.race.processes.block_worker import CONTROLLED_MEMORY
from fairlap.race.run import Run
from fairlap.render.plan_command import command_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Seconds
from fairlap.results.results import results_of
from machine_marks import needs
from small_races import run_race

needs("onnxruntime")

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs/how-to/time-from-file-to-answer.md"
_WITHIN = 0.15  # of quick answers, on a machine that does other things too
_STAGES_WITHIN = 0.3
_SMALL = 16


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder of a user, with the code and an ONNX file for small arrays."""
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    photo_classifier.code(tmp_path)
    photo_classifier.onnx_file(tmp_path / "small.onnx", _SMALL)
    return tmp_path


@pytest.fixture
def items(here: Path) -> Path:
    return photo_classifier.arrays(here / "items", 3, _SMALL)


def functions(*names: str) -> tuple[str, ...]:
    return tuple(f"{photo_classifier.NAME}:{name}" for name in names)


def raced(model: Path, items: Path, on: list[str], **options: Any) -> dict[str, Any]:
    usual = {"dims": "batch=1", "blocks": 1, "seconds": 0.1, "threads": 1}
    results = fairlap.compare(str(model), on=on, items=str(items), **{**usual, **options})
    return {row.contestant: row for row in results.rows}


def by_hand(model: Path, folder: Path) -> dict[str, Any]:
    program = TOP / "tests/support/photos_by_hand.py"
    done = subprocess.run(
        ["taskset", "-c", "0", sys.executable, str(program), str(model), str(folder)],
        env={**os.environ, **CONTROLLED_MEMORY, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_all_from_photo_to_class_takes_as_long_as_in_a_loop_by_hand(here: Path) -> None:
    """By the quick answers of both, which other processes disturb least."""
    pytest.importorskip("PIL", reason="`make test-slow` installs Pillow and runs this")
    model = photo_classifier.onnx_file(here / "photos.onnx")
    folder = photo_classifier.photos(here / "photos", 4)
    request = RaceRequest(
        models=(str(model),),
        contestants=Contestants("onnxruntime"),
        dims="batch=1",
        items=str(folder),
        before=functions("decode", "resize", "scale"),
        after=functions("best"),
        blocks=2,
        seconds=Seconds(0.8),
        threads=1,
    )
    plan, kept = plan_of(request), []
    assert command_of(plan).count("photo_code:") == 4
    assert any("photo_code:best" in line for line in reach_of(plan))
    race = run_race(plan, keep=lambda _process, samples: kept.append(samples))
    [row] = results_of(Run(plan, race.processes, {}, {}, "2026-01-01T00:00:00+00:00"), "r").rows
    assert row.judged_by == "time from file to answer"
    assert [each.stage for each in row.file_stages] == ["decode", "resize", "scale", "model", "best"]
    figures = [np.mean([np.median(samples[f"file-{item}/wall_ns"]) for item in range(4)]) for samples in kept]
    assert [each.answers.answer_ns for each in race.processes if each.answers is not None] == pytest.approx(figures)
    assert row.judged is not None
    assert 0.999 * min(figures) <= row.judged.value <= 1.001 * max(figures)
    loops = [by_hand(model, folder) for _ in range(3)]
    for stage, within in (("", _WITHIN), ("-decode", _STAGES_WITHIN), ("-model", _STAGES_WITHIN)):
        quick_ns = min(
            np.mean([np.quantile(samples[f"file-{item}{stage}/wall_ns"], 0.1) for item in range(4)]) for samples in kept
        )
        apart = [abs(quick_ns / loop["quick_ns"][stage[1:] or "all"] - 1) for loop in loops]
        assert min(apart) < within, (stage, apart)


@pytest.mark.slow
def test_frameworks_race_from_file_to_answer_and_overlap_what_waits(here: Path, items: Path) -> None:
    """A stage that sleeps overlaps with the model even on one core."""
    for module in ("torch", "jax"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    on = ["onnxruntime", "torch", "jax", "onnxruntime:slowdown=900%"]
    rows = raced(
        here / "small.onnx",
        items,
        on,
        before=functions("load", "pausing"),
        after=functions("pausing_again"),
        seconds=0.2,
    )
    assert {row.outcome for row in rows.values()} == {"finished"}, [row.message for row in rows.values()]
    stages = {name: {each.stage: each for each in row.file_stages} for name, row in rows.items()}
    for name, row in rows.items():
        assert min(stages[name][each].stage_ns.value for each in ("pausing", "pausing_again")) > 4e6
        assert row.judged.value > 8e6
        assert row.file_answers_per_s.value == pytest.approx(1e9 / row.judged.value, rel=0.01)
    slowed, usual = rows["onnxruntime:slowdown=900%"], rows["onnxruntime"]
    assert slowed.file_model_ns.value > 3 * usual.file_model_ns.value
    assert slowed.judged.value / usual.judged.value < slowed.file_model_ns.value / usual.file_model_ns.value
    for row in rows.values():
        assert row.file_overlapped_per_s.value > 1.3 * row.file_answers_per_s.value


def test_a_race_from_file_to_answer_has_all_figures_and_is_planned_again_by_its_command(
    here: Path, items: Path
) -> None:
    plan = here / "plan.json"
    asked = ("--dims", "batch=1", "--items", items, "--before", *functions("load"), "--after", *functions("best"))
    run = here / "run.json"
    options = ("--blocks", 1, "--seconds", "0.05", "--no-store", "--quiet", "--save-plan", plan, "-o", run)
    text = output("compare", here / "small.onnx", "--on", "onnxruntime", *asked, *options)
    assert "load" in text
    [row] = json.loads(output("show", run, "--json"))["rows"]
    assert row["outcome"] == "finished"
    assert [each["stage"] for each in row["file_stages"]] == ["load", "model", "best"]
    assert row["file_model_ns"]["value"] < row["judged"]["value"]
    assert 0 < row["file_model_share"]["value"] < 1
    assert row["file_overlapped_per_s"]["value"] > 0
    first = output("compare", here / "small.onnx", "--on", "onnxruntime", *asked, "--blocks", 1, "--dry-run", "--json")
    [work] = json.loads(first)["works"]
    assert work["stages"]["names"] == ["0.npy", "1.npy", "2.npy"]
    np.save(items / "1.npy", np.zeros((1, 3, _SMALL, _SMALL), np.float32))
    assert refusal("compare", "--plan", plan, "--no-store", "--quiet").code == "E_DATA_CHANGED"


@pytest.mark.slow
def test_contestants_whose_functions_or_answers_are_others_are_disqualified(here: Path, items: Path) -> None:
    options = {"seconds": 0.05, "after": functions("best")}
    rows = raced(
        here / "small.onnx", items, ["onnxruntime"], before=functions("load", "otherwise_in_a_contestant"), **options
    )
    row = rows["onnxruntime"]
    assert (row.outcome, row.code) == ("disqualified", "E_STAGE")
    assert re.search(r"\d\.npy", row.message)
    rows = raced(
        here / "small.onnx",
        items,
        ["onnxruntime"],
        before=functions("load"),
        after=functions("worse_in_a_contestant"),
        seconds=0.05,
    )
    row = rows["onnxruntime"]
    assert (row.outcome, row.code) == ("disqualified", "E_OUTPUT")
    assert re.search(r"\d\.npy", row.message)


@pytest.mark.slow
def test_an_answer_that_rounding_decides_is_said_to_be_unproven(here: Path, items: Path) -> None:
    """Whole numbers of which each float32 gives others."""
    options = {"before": functions("load"), "after": functions("last_digits"), "seconds": 0.05}
    row = raced(here / "small.onnx", items, ["onnxruntime"], **options)["onnxruntime"]
    assert row.outcome == "finished", row.message
    [notice] = [each for each in row.warnings if each.code == "W_WEAK_PROOF"]
    assert "0.npy" in notice.text


@pytest.mark.slow
def test_contestants_in_a_sandbox_read_the_files_and_the_functions(here: Path, items: Path) -> None:
    rows = raced(
        here / "small.onnx", items, ["onnxruntime"], before=functions("load"), after=functions("best"), sandbox=True
    )
    assert rows["onnxruntime"].outcome == "finished", rows["onnxruntime"].message


@pytest.mark.slow
def test_a_file_that_is_no_photo_is_named_before_anything_runs(here: Path) -> None:
    pytest.importorskip("PIL", reason="`make test-slow` installs Pillow and runs this")
    model = photo_classifier.onnx_file(here / "photos.onnx")
    folder = photo_classifier.photos(here / "photos", 2)
    whole = (folder / "01.jpg").read_bytes()
    before = ",".join(functions("decode", "resize", "scale"))
    asked = ("--dims", "batch=1", "--items", folder, "--before", before, "--no-store", "--quiet")
    for content in (whole[: len(whole) // 3], b"not a photo"):
        (folder / "01.jpg").write_bytes(content)
        refused = refusal("compare", model, "--on", "onnxruntime", *asked)
        assert refused.code == "E_STAGE"
        assert "01.jpg" in str(refused)
        assert "decode" in str(refused)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--before", "photo_code:load,photo_code:noisy"), "E_STAGE"),
        pytest.param(
            ("--before", "photo_code:load", "--after", "photo_code:raising"), "E_STAGE", marks=pytest.mark.slow
        ),
        (("--before", "photo_code:load", "--mode", "grad"), "E_ITEMS"),
        (("--before", "photo_code:load", "--data", "synthetic"), "E_ITEMS"),
        ((), "E_ITEMS"),
    ],
)
def test_what_cannot_be_raced_is_one_line_with_a_code(
    here: Path, items: Path, options: tuple[str, ...], code: str
) -> None:
    asked = ("--dims", "batch=1", "--items", items, *options, "--no-store", "--quiet")
    refused = refusal("compare", here / "small.onnx", "--on", "onnxruntime", *asked)
    assert refused.code == code
    assert "\n" not in str(refused)


def test_functions_without_files_and_files_for_a_model_that_generates_are_refused(here: Path, items: Path) -> None:
    refused = refusal(
        "compare", here / "small.onnx", "--on", "onnxruntime", "--before", "photo_code:load", "--no-store"
    )
    assert refused.code == "E_ITEMS"
    asked = ("--items", items, "--before", "photo_code:load", "--no-store", "--quiet")
    assert refusal("compare", "characters_generate", "--on", "onnxruntime", *asked).code == "E_ITEMS"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "stages"),
    [
        ("model.onnx", ["decode", "scale", "model", "best"]),
        ("yolov8:n", ["pixels", "model", "decoded", "kept"]),
        ("conformer:small", ["samples", "log_mel", "model", "greedy", "text"]),
    ],
)
def test_each_example_of_the_page_races(here: Path, model: str, stages: list[str]) -> None:
    pytest.importorskip("PIL", reason="`make test-slow` installs Pillow and runs this")
    photo_classifier.onnx_file(here / "model.onnx")
    photo_classifier.photos(here / "photos", 2)
    recordings(here / "recordings")
    text = PAGE.read_text()
    [example] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (here / "photo_stages.py").write_text(example)
    [command] = re.findall(rf"^fairlap (compare {model} .*)$", text, re.MULTILINE)
    words = [each if each != "onnxruntime,torch,jax" else "onnxruntime" for each in command.split()]
    run = here / "run.json"
    output(*words, "--blocks", 1, "--seconds", "0.05", "--threads", 1, "--no-store", "--quiet", "-o", run)
    [row] = json.loads(output("show", run, "--json"))["rows"]
    assert row["outcome"] == "finished"
    assert [each["stage"] for each in row["file_stages"]] == stages


def recordings(folder: Path) -> None:
    folder.mkdir()
    for number, seconds in enumerate((2.5, 4.0)):
        with wave.open(str(folder / f"{number}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16_000)
            noise = np.random.default_rng(number).normal(0, 3_000, round(16_000 * seconds))
            file.writeframes(noise.astype("<i2").tobytes())

"""The real frameworks learn the digits: the same steps, scores that are reached, and a report with their curves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import error_code
from command_line import fairlap as run

pytestmark = pytest.mark.timeout(600)

pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
ON = "torch,jax,tensorflow:graph"
QUICK = ("--mode", "train", "--seconds", "0.1s", "--no-store", "--quiet", "--threads", 1, "--seed", 1)


def test_frameworks_reach_a_score(tmp_path: Path) -> None:
    for framework in ("torch", "jax", "tensorflow"):
        pytest.importorskip(framework, reason="`make test` installs it and runs this")
    page = tmp_path / "race.html"
    scored = ("--to-score", "85%", "--metric", "top1,perplexity")
    done = run("compare", "digits", "--on", ON, *QUICK, "--blocks", 2, *scored, "--json", "-o", page)
    assert done.returncode == 0, done.stderr
    rows = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    assert set(rows) == set(ON.split(","))
    for row in rows.values():
        assert row["outcome"] == "finished", row["message"]
        assert (row["target_score"], row["reached_share"]) == (0.85, 1.0)
        assert 0.85 <= row["best_score"] <= 1.0
        assert row["steps_to_score"] % 44 == 0
        assert row["time_to_score_s"]["value"] > 0
        assert 0.85 <= row["accuracy"]["value"] <= row["best_score"]
        assert {name: each["items"] for name, each in row["scores"].items()} == {"top1": 359, "perplexity": 359}
        assert 1 < row["scores"]["perplexity"]["value"] < 3
    assert "learning_seconds" in page.read_text()


def test_a_score_that_is_not_reached_is_absent_with_the_best_one() -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    options = ("--blocks", 1, "--to-score", "99.9%", "--epochs", 1, "--json")
    done = run("compare", "digits", "--on", "torch", *QUICK, *options)
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)["rows"]
    assert (row["time_to_score_s"], row["steps_to_score"], row["reached_share"]) == (None, None, 0.0)
    assert row["best_score"] > 0.2
    assert "0 of 1" in row["absent"]["time_to_score_s"]


@pytest.mark.parametrize(
    "options",
    [
        ("digits", "--to-score", "97%"),
        ("mlp", "--mode", "train", "--to-score", "97%"),
        ("digits", "--mode", "train", "--to-score", "97%", "--batch", 2000),
        ("digits", "--mode", "train", "--epochs", 3),
    ],
)
def test_what_cannot_be_trained_to_a_score_is_refused(options: tuple[object, ...]) -> None:
    done = run("compare", *options, "--on", "torch", "--no-store", "--quiet")
    assert done.returncode == 2
    assert error_code(done) == "E_TO_SCORE"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--metric", "top1"), "E_METRIC"),
        (("--mode", "train", "--metric", "top1"), "E_METRIC"),
        (("--mode", "train", "--to-score", "97%", "--metric", "mse"), "E_METRIC"),
        (("--mode", "train", "--to-score", "97%", "--metric", "top1", "--labels", "y.npy"), "E_METRIC"),
        (("--mode", "train", "-o", "training.mllog"), "E_OUTPUT_FORMAT"),
    ],
)
def test_metrics_and_logs_of_no_training_are_refused(options: tuple[str, ...], code: str) -> None:
    if code == "E_OUTPUT_FORMAT":
        pytest.importorskip("mlperf_logging", reason="`make test` installs it and runs this")
    done = run("compare", "digits", *options, "--on", "torch", "--no-store", "--quiet")
    assert (done.returncode, error_code(done)) == (2, code)

"""The real frameworks learn data sets: the same steps, scores that are reached, and a report with their curves."""

from __future__ import annotations

import json
import time
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import error_code, here, output, refusal
from command_line import fairlap as run
from fairlap.scenarios.learning.race import learning
from fairlap.scenarios.learning.race.held_out_answers import held_out_answers
from machine_marks import needs_package

pytestmark = [pytest.mark.timeout(600), needs_package("sklearn")]

ON = "torch,jax,tensorflow:graph"
QUICK = ("--mode", "train", "--seconds", "0.1s", "--no-store", "--quiet", "--threads", 1, "--seed", 1)


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_score_that_is_not_reached_is_absent_with_the_best_one() -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    options = ("--blocks", 1, "--to-score", "99.9%", "--epochs", 1, "--json")
    done = run("compare", "digits", "--on", "torch", *QUICK, *options)
    assert done.returncode == 1, done.stderr
    [row] = json.loads(done.stdout)["rows"]
    assert (row["time_to_score_s"], row["steps_to_score"], row["reached_share"]) == (None, None, 0.0)
    assert row["best_score"] > 0.2
    assert "0 of 1" in row["absent"]["time_to_score_s"]


@pytest.mark.slow
def test_where_scores_take_long_few_epochs_are_scored_and_the_first_that_passed_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for framework in ("torch", "jax"):
        pytest.importorskip(framework, reason="`make test` installs it and runs this")
    asked = ("compare", "digits", "--on", "torch,jax", *QUICK, "--blocks", 1, "--to-score", "98.2%", "--json")
    quick = {row["contestant"]: row for row in json.loads(here(*asked).stdout)["rows"]}
    scored: list[int] = []

    def slowly(materials: Any, found: Any, state: Any, epochs: int) -> Any:
        scored.append(epochs)
        time.sleep(2)
        return held_out_answers(materials, found, state, epochs)

    monkeypatch.setattr(learning, "held_out_answers", slowly)
    slow = {row["contestant"]: row for row in json.loads(here(*asked).stdout)["rows"]}
    [every] = {row["scored_every_epochs"] for row in slow.values()}
    assert every > 2
    for name, row in slow.items():
        assert quick[name]["scored_every_epochs"] == 1
        assert row["best_score"] >= 0.982
        # From epoch 7 on, all scores pass; where rounding loses one, a later epoch is the first of those since then.
        assert row["steps_to_score"] >= quick[name]["steps_to_score"]
    most = 2 + ceil(max(row["steps_to_score"] for row in slow.values()) / 44 / every) + ceil(log2(every))
    assert len(scored) <= len(slow) * most


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    """Two kinds of flowers that differ in one of three numbers."""
    rng, path = np.random.default_rng(0), tmp_path / "flowers.csv"
    kinds = rng.integers(0, 2, 300)
    sizes = rng.normal(100, 20, (300, 3)) + 60 * np.outer(kinds, [0, 1, 0])
    lines = [f"{a},{b},{c},{'rose' if kind else 'aster'}" for (a, b, c), kind in zip(sizes, kinds, strict=True)]
    path.write_text("\n".join(["height,width,depth,kind", *lines]) + "\n")
    return path


def learnt(*arguments: object, on: str, timeout_s: float = 120) -> dict[str, dict[str, Any]]:
    """Race one block, and return the rows by contestant."""
    for name in on.split(","):
        pytest.importorskip(name.partition(":")[0], reason="`make test` installs it and runs this")
    done = run("compare", *arguments, "--on", on, *QUICK, "--blocks", 1, "--json", timeout_s=timeout_s)
    assert done.returncode == 0, done.stderr
    rows = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    assert set(rows) == set(on.split(","))
    for row in rows.values():
        assert row["outcome"] == "finished", row["message"]  # equal training is proven, or it is disqualified
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(("data", "score"), [("breast_cancer", 0.9), ("diabetes", 0.3)])
def test_a_table_is_learnt_by_a_model_of_its_sizes(data: str, score: float) -> None:
    rows = learnt("tabular", "--train-on", data, "--to-score", score, "--epochs", 6, on=ON)
    for row in rows.values():
        assert (row["reached_share"], row["train_on"], len(row["train_on_hash"])) == (1.0, data, 64)
    assert len({row["steps_to_score"] for row in rows.values()}) == 1


@pytest.mark.slow
def test_frameworks_answer_the_held_out_items_themselves_where_that_counts() -> None:
    rows = learnt("tabular", "--to-score", "90%", "--epochs", 6, "--count-evaluation", on=ON)
    for row in rows.values():
        assert 0 < row["evaluation_to_score_s"]["value"] < row["time_to_score_s"]["value"]


@pytest.mark.thorough
@pytest.mark.timeout(1300)
@pytest.mark.parametrize(
    ("model", "on", "options"),
    [
        ("mnist", "torch,jax,tensorflow:graph", ()),
        ("digits", "torch:compile,tensorflow,tensorflow:xla", ()),
        ("digits", "torch,tensorflow:graph", ("--precision", "autocast")),
        ("digits", "torch,jax,tensorflow:graph", ("--precision", "bf16")),
        ("characters", "torch,jax,tensorflow:graph", ()),
    ],
)
def test_evaluation_counts_in_every_variant_and_precision(model: str, on: str, options: tuple[str, ...]) -> None:
    rows = learnt(model, "--to-score", "30%", "--epochs", 4, "--count-evaluation", *options, on=on, timeout_s=1200)
    for row in rows.values():
        assert row["evaluation_to_score_s"]["value"] > 0, row["absent"]


@pytest.mark.slow
def test_a_part_of_a_file_of_one_s_own_is_learnt(flowers: Path) -> None:
    options = ("--train-on", f"{flowers}:kind", "--fraction", "40%", "--batch", 16, "--to-score", "90%", "--epochs", 8)
    for row in learnt("tabular", *options, on="torch,jax").values():
        assert row["reached_share"] == 1.0
        assert row["steps_to_score"] % 6 == 0  # batches of 16 in 96 items
        assert row["train_on"].startswith("40 % of flowers.csv:kind (")


@pytest.mark.slow
def test_images_of_another_size_with_other_classes_are_learnt(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 240)
    images = rng.integers(0, 60, (240, 3, 6, 10)) + 80 * np.eye(3, dtype=int)[labels][:, :, None, None]
    np.savez(tmp_path / "colours.npz", image=images.astype(np.uint8), labels=labels)
    rows = learnt("digits", "--train-on", tmp_path / "colours.npz", "--to-score", "80%", "--epochs", 8, on="torch,jax")
    assert {row["reached_share"] for row in rows.values()} == {1.0}


@pytest.mark.slow
def test_a_saved_plan_is_not_run_on_data_that_changed(flowers: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    options = ("--train-on", flowers, "--to-score", "90%", "--epochs", 2)
    output("compare", "tabular", "--on", "torch", *QUICK, "--blocks", 1, *options, "--dry-run", "--save-plan", plan)
    flowers.write_text(flowers.read_text().replace("rose", "tulip"))
    done = run("compare", "--plan", plan, "--no-store", "--quiet")  # this process has read the data
    assert (done.returncode, error_code(done)) == (2, "E_DATA_CHANGED")


@pytest.mark.parametrize("data", ["no_such_set", "missing.csv", "flowers.csv:colour", "flowers.csv", "digits"])
def test_data_that_cannot_be_learnt_are_refused(data: str, flowers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(flowers.parent)
    batch = 512 if data == "flowers.csv" else 16  # more than the items
    options = ("--mode", "train", "--to-score", "90%", "--train-on", data, "--batch", batch)
    assert refusal("compare", "tabular", "--on", "torch", "--no-store", "--quiet", *options).code == "E_DATA"


@pytest.mark.parametrize(
    "options",
    [
        ("digits", "--to-score", "97%"),
        ("mlp", "--mode", "train", "--to-score", "97%"),
        ("digits", "--mode", "train", "--epochs", 3),
        ("digits", "--mode", "train", "--train-on", "digits"),
        ("digits", "--mode", "train", "--fraction", "5%"),
        ("digits", "--mode", "train", "--count-evaluation"),
    ],
)
def test_what_cannot_be_trained_to_a_score_is_refused(options: tuple[object, ...]) -> None:
    assert refusal("compare", *options, "--on", "torch", "--no-store", "--quiet").code == "E_TO_SCORE"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--metric", "top1"), "E_METRIC"),
        (("--mode", "train", "--metric", "top1"), "E_METRIC"),
        (("--mode", "train", "--to-score", "97%", "--metric", "mse"), "E_METRIC"),
        (("--mode", "train", "--to-score", "97%", "--data", "synthetic"), "E_TO_SCORE"),
        (("--mode", "train", "--to-score", "97%", "--metric", "top1", "--labels", "y.npy"), "E_METRIC"),
        (("--mode", "train", "-o", "training.mllog"), "E_OUTPUT_FORMAT"),
    ],
)
def test_what_does_not_go_with_training_to_a_score_is_refused(options: tuple[str, ...], code: str) -> None:
    if code == "E_OUTPUT_FORMAT":
        pytest.importorskip("mlperf_logging", reason="`make test` installs it and runs this")
    assert refusal("compare", "digits", *options, "--on", "torch", "--no-store", "--quiet").code == code


@pytest.mark.thorough
def test_precisions_are_trained_to_a_score_and_ranked_together() -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    options = ("--precision", "fp32,autocast", "--across-precisions", "--blocks", 1, "--to-score", "85%", "--json")
    done = run("compare", "digits", "--on", "torch", *QUICK, *options)
    assert done.returncode == 0, done.stderr
    rows = {row["precision"]: row for row in json.loads(done.stdout)["rows"]}
    assert {precision: row["outcome"] for precision, row in rows.items()} == {
        "fp32": "finished",
        "autocast": "finished",
    }
    assert all(row["reached_share"] == 1.0 for row in rows.values())
    assert rows["autocast"]["error_drop"] > 1e-3


def test_training_in_fp16_is_refused() -> None:
    options = ("--mode", "train", "--precision", "fp16", "--no-store", "--quiet")
    assert "fp16" in str(refusal("compare", "mlp", "--on", "torch", *options))

"""A race on labelled data scores each contestant on all of it, in batches of the model's size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fairlap
import numpy as np
import pytest
from command_line import error_code
from command_line import fairlap as run
from fairlap.errors import FairlapError
from onnx_files import CLASSES, ROWS, answers_by_hand, masked_lookup, weights

pytest.importorskip("onnx", reason="`make test` installs it and runs this")
pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")

ITEMS, SEQUENCE, BATCH = 21, 6, 4


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    return masked_lookup(tmp_path / "m.onnx")


def data() -> tuple[dict[str, np.ndarray], np.ndarray, float]:
    """Inputs, labels, and the share of rows that the model gets right."""
    drawn = np.random.default_rng(0)
    ids, mask = drawn.integers(0, ROWS, (ITEMS, SEQUENCE)), drawn.integers(0, 2, (ITEMS, SEQUENCE))
    mask[:, 0] = 1
    best = answers_by_hand(weights(), ids, mask).argmax(axis=-1)
    labels = np.where(drawn.random(best.shape) < 0.3, (best + 1) % CLASSES, best)
    logits = answers_by_hand(weights(), ids, mask)
    right = np.take_along_axis(logits, labels[..., None], axis=-1)
    return {"ids": ids, "mask": mask}, labels, float(np.mean(np.count_nonzero(logits >= right, axis=-1) <= 1))


def test_every_contestant_answers_all_items_also_those_of_the_last_batch(model: Path, tmp_path: Path) -> None:
    inputs, labels, share = data()
    np.savez(tmp_path / "x.npz", allow_pickle=False, **inputs)
    np.save(tmp_path / "y.npy", labels)
    options = ("--on", "onnxruntime,openvino", "--batch", str(BATCH), "--inputs", tmp_path / "x.npz")
    short = ("--blocks", "1", "--seconds", "0.05", "--threads", "1", "--no-store", "--quiet")
    done = run(
        *("compare", model, *options, "--metric", "top1,perplexity", "--labels", tmp_path / "y.npy", *short),
        *("-o", tmp_path / "rows.jsonl", "-o", tmp_path / "run.json"),
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    for row in rows:
        if row["outcome"] == "not_installed":
            continue
        assert row["batch"] == BATCH
        assert row["accuracy"]["value"] == pytest.approx(share)
        assert row["accuracy"]["low"] < share < row["accuracy"]["high"]
        found = row["scores"]["perplexity"]
        assert found["items"] == ITEMS
        assert found["low"] < found["value"] < found["high"]
    assert rows[0]["outcome"] == "finished"
    assert f"{share:.4g}" in done.stdout


def test_python_takes_arrays_and_the_row_is_absent_without_a_metric(model: Path) -> None:
    inputs, labels, share = data()
    options: dict[str, Any] = {"on": ["onnxruntime"], "blocks": 1, "seconds": 0.05, "threads": 1, "batch": BATCH}
    (row,) = fairlap.compare(str(model), inputs=inputs, metric="top1", labels=labels, **options).rows
    assert row.accuracy is not None
    assert row.accuracy.value == pytest.approx(share)
    (row,) = fairlap.compare(str(model), dims={"sequence": SEQUENCE}, **options).rows
    assert row.accuracy is None
    assert row.absent["accuracy"]
    assert row.scores == {}


def test_what_does_not_fit_is_refused_before_anything_runs(model: Path, tmp_path: Path) -> None:
    inputs, labels, _ = data()
    np.savez(tmp_path / "x.npz", allow_pickle=False, **inputs)
    np.save(tmp_path / "y.npy", labels)
    options = ("compare", model, "--on", "onnxruntime", "--batch", "4", "--no-store", "--quiet")
    given = ("--inputs", tmp_path / "x.npz", "--labels", tmp_path / "y.npy")
    for arguments in (("--metric", "top3", *given), ("--metric", "top1:scores", *given), given, ("--metric", "top1")):
        done = run(*options, *arguments)
        assert (done.returncode, error_code(done)) == (2, "E_METRIC")
        assert done.stderr.count("\n") == 1
    done = run("compare", "mlp", "--on", "onnxruntime", "--no-store", "--quiet", "--metric", "top1", *given)
    assert (done.returncode, error_code(done)) == (2, "E_METRIC")
    for wrong in (labels[1:], labels + CLASSES, labels[:, 0]):
        with pytest.raises(FairlapError) as refused:
            fairlap.compare(str(model), on="onnxruntime", inputs=inputs, metric="top1", labels=wrong, batch=4)
        assert refused.value.code == "E_METRIC"

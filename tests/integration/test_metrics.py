"""A race on labelled data scores each contestant on all of it, in batches of the model's size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fairlap
import numpy as np
import pytest
from command_line import SHORT, error_code, here
from fairlap.errors import FairlapError
from machine_marks import needs
from onnx_files import CLASSES, ROWS, answers_by_hand, masked_lookup, weights
from open_images_part import DOG, SIDE, open_images

needs("onnx", "onnxruntime")

ITEMS, SEQUENCE, BATCH = 21, 6, 4


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    return masked_lookup(tmp_path / "m.onnx")


def data() -> tuple[dict[str, np.ndarray], np.ndarray, float]:
    """Draw inputs and labels, and compute the share of rows that the model gets right."""
    drawn = np.random.default_rng(0)
    ids, mask = drawn.integers(0, ROWS, (ITEMS, SEQUENCE)), drawn.integers(0, 2, (ITEMS, SEQUENCE))
    mask[:, 0] = 1
    best = answers_by_hand(weights(), ids, mask).argmax(axis=-1)
    labels = np.where(drawn.random(best.shape) < 0.3, (best + 1) % CLASSES, best)
    logits = answers_by_hand(weights(), ids, mask)
    right = np.take_along_axis(logits, labels[..., None], axis=-1)
    return {"ids": ids, "mask": mask}, labels, float(np.mean(np.count_nonzero(logits >= right, axis=-1) <= 1))


@pytest.mark.slow
def test_every_contestant_answers_all_items_also_those_of_the_last_batch(model: Path, tmp_path: Path) -> None:
    inputs, labels, share = data()
    np.savez(tmp_path / "x.npz", allow_pickle=False, **inputs)
    np.save(tmp_path / "y.npy", labels)
    options = ("--on", "onnxruntime,openvino", "--batch", str(BATCH), "--inputs", tmp_path / "x.npz")
    done = here(
        *("compare", model, *options, "--metric", "top1,perplexity", "--labels", tmp_path / "y.npy", *SHORT),
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_does_not_fit_is_refused_before_anything_runs(model: Path, tmp_path: Path) -> None:
    inputs, labels, _ = data()
    np.savez(tmp_path / "x.npz", allow_pickle=False, **inputs)
    np.save(tmp_path / "y.npy", labels)
    options = ("compare", model, "--on", "onnxruntime", "--batch", "4", "--no-store", "--quiet")
    given = ("--inputs", tmp_path / "x.npz", "--labels", tmp_path / "y.npy")
    for arguments in (("--metric", "top3", *given), ("--metric", "top1:scores", *given), given, ("--metric", "top1")):
        done = here(*options, *arguments)
        assert (done.returncode, error_code(done)) == (2, "E_METRIC")
        assert done.stderr.count("\n") == 1
    done = here("compare", "mlp", "--on", "onnxruntime", "--no-store", "--quiet", "--metric", "top1", *given)
    assert (done.returncode, error_code(done)) == (2, "E_METRIC")
    for wrong in (labels[1:], labels + CLASSES, labels[:, 0]):
        with pytest.raises(FairlapError) as refused:
            fairlap.compare(str(model), on="onnxruntime", inputs=inputs, metric="top1", labels=wrong, batch=4)
        assert refused.value.code == "E_METRIC"


def graph_file(path: Path, shape: list[int], arrays: dict[str, np.ndarray], nodes: list[tuple[Any, ...]]) -> Path:
    """Write a model of one input ``x``.

    A node has its operator, its inputs, its outputs and its attributes; an output that ends in "!" is one of the model.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    made = [helper.make_node(kind, ins, [out.rstrip("!") for out in outs], **more) for kind, ins, outs, more in nodes]
    outputs = [out.rstrip("!") for _, _, outs, _ in nodes for out in outs if out.endswith("!")]
    whole = {node.output[0] for node in made if node.op_type in ("ArgMax", "Cast")}
    graph = helper.make_graph(
        made,
        path.stem,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])],
        [
            helper.make_tensor_value_info(name, TensorProto.INT64 if name in whole else TensorProto.FLOAT, None)
            for name in outputs
        ],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def scores_in(rows: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    ran = [row for row in found if row["outcome"] != "not_installed"]
    assert {row["outcome"] for row in ran} == {"finished"}, [row["message"] for row in ran]
    return [row["scores"] for row in ran]


def test_ids_and_scores_of_ids_are_scored_by_their_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jiwer = pytest.importorskip("jiwer", reason="`make test` installs it and runs this")
    sacrebleu = pytest.importorskip("sacrebleu", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    tokens, ids = 6, 9
    times = np.linspace(0.8, 1.2, ids, dtype=np.float32)
    nodes = [
        ("Mul", ["x", "times"], ["logits!"], {}),
        ("ArgMax", ["logits"], ["ids!"], {"axis": -1, "keepdims": 0}),
    ]
    model = graph_file(tmp_path / "tokens.onnx", [tokens, ids], {"times": times}, nodes)
    drawn = np.random.default_rng(0)
    x = drawn.standard_normal((ITEMS, tokens, ids)).astype(np.float32)
    best = (x * times).argmax(axis=-1)
    labels = np.where(drawn.random(best.shape) < 0.3, (best + 1) % ids, best)
    labels[::4, 4:] = -100
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", labels)
    given = ("--inputs", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--batch", BATCH)
    done = here(
        *("compare", model, "--on", "onnxruntime,openvino", *given, "--metric", "wer,bleu,wer:ids", *SHORT),
        *("-o", tmp_path / "rows.jsonl"),
    )
    assert done.returncode == 0, done.stderr
    right = [" ".join(map(str, row[row >= 0])) for row in labels]
    in_place = [" ".join(map(str, row[own >= 0])) for row, own in zip(best, labels, strict=True)]
    all_ids = [" ".join(map(str, row)) for row in best]
    for scores in scores_in(tmp_path / "rows.jsonl"):
        assert scores["wer"]["value"] == pytest.approx(jiwer.wer(right, in_place))
        assert scores["wer:ids"]["value"] == pytest.approx(jiwer.wer(right, all_ids))
        bleu = sacrebleu.corpus_bleu(in_place, [right], tokenize="none", force=True).score
        assert scores["bleu"]["value"] == pytest.approx(bleu)
        assert scores["bleu"]["low"] < bleu < scores["bleu"]["high"]


@pytest.mark.slow
def test_boxes_are_scored_against_an_annotation_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pycocotools", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    boxes = 3
    arrays = {"times": np.ones(6, np.float32), "sizes": np.array([4, 1, 1]), "last": np.array([-1])}
    nodes = [
        ("Mul", ["x", "times"], ["all"], {}),
        ("Split", ["all", "sizes"], ["corners!", "score", "category"], {"axis": -1}),
        ("Squeeze", ["score", "last"], ["sure"], {}),
        ("Sigmoid", ["sure"], ["confidence!"], {}),
        ("Squeeze", ["category", "last"], ["number"], {}),
        ("Floor", ["number"], ["floored"], {}),
        ("Cast", ["floored"], ["kind!"], {"to": 7}),
    ]
    model = graph_file(tmp_path / "boxes.onnx", [boxes, 6], arrays, nodes)
    drawn = np.random.default_rng(0)
    x = drawn.uniform(5, 40, (ITEMS, boxes, 6)).astype(np.float32)
    x[..., 2:4] += x[..., :2]
    x[..., 4] = drawn.uniform(-1, 2, (ITEMS, boxes))
    x[..., 5] = drawn.integers(0, 3, (ITEMS, boxes)) + 0.5
    np.save(tmp_path / "x.npy", x)
    annotations = [
        {"image_id": item + 7, "category_id": int(kind), "bbox": [left, top, right - left, bottom - top]}
        for item, rows in enumerate(x.tolist())
        for left, top, right, bottom, _, kind in rows
    ]
    file = {"images": [{"id": item + 7} for item in range(ITEMS)], "annotations": annotations}
    (tmp_path / "y.json").write_text(json.dumps(file))
    given = ("--inputs", tmp_path / "x.npy", "--labels", tmp_path / "y.json", "--batch", BATCH)
    metric = "map:corners+confidence+kind"
    on = ("compare", model, "--on", "onnxruntime,openvino", *given, *SHORT)
    done = here(*on, "--metric", metric, "-o", tmp_path / "rows.jsonl")
    assert done.returncode == 0, done.stderr
    for scores in scores_in(tmp_path / "rows.jsonl"):
        assert scores[metric]["value"] == pytest.approx(1.0)
        assert scores[metric]["low"] is None
        assert scores[metric]["why_no_interval"]
    for wrong in ("map", "map:kind+confidence+corners", f"{metric},top1"):
        done = here(*on, "--metric", wrong)
        assert (done.returncode, error_code(done)) == (2, "E_METRIC")
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_boxes_are_scored_as_in_open_images_challenges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model finds the dog of one photo as such, and one in a photo where people found none."""
    pytest.importorskip("PIL.Image", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    file = open_images(tmp_path)
    arrays = {
        "box": np.array([[[4, 4, 8, 12]]], np.float32),
        "sure": np.array([[0.9]], np.float32),
        "dog": np.array([[DOG]], np.float32),
        "small": np.array([1e-3], np.float32),
        "row": np.array([1]),
    }
    nodes = [
        ("ReduceMean", ["x"], ["mean"], {"axes": [1, 2, 3], "keepdims": 0}),
        ("Unsqueeze", ["mean", "row"], ["means"], {}),
        ("Unsqueeze", ["means", "row"], ["each"], {}),
        ("Mul", ["means", "small"], ["little"], {}),
        ("Mul", ["each", "small"], ["least"], {}),
        ("Add", ["box", "least"], ["boxes!"], {}),
        ("Add", ["sure", "little"], ["scores!"], {}),
        ("Add", ["dog", "little"], ["near"], {}),
        ("Round", ["near"], ["classes!"], {}),
    ]
    model = graph_file(tmp_path / "dogs.onnx", [3, SIDE, SIDE], arrays, nodes)
    done = here(
        *("compare", model, "--on", "onnxruntime", "--shapes", f"x:1x3x{SIDE}x{SIDE}", "--inputs", file),
        *("--labels", file, "--metric", "oi_map", *SHORT, "-o", tmp_path / "rows.jsonl"),
    )
    assert done.returncode == 0, done.stderr
    [scores] = scores_in(tmp_path / "rows.jsonl")
    assert scores["oi_map"]["items"] == 3
    precisions = (1.0, 1 / 2)  # the two are equally sure, so either may come first
    assert any(scores["oi_map"]["value"] == pytest.approx(each / 6) for each in precisions)

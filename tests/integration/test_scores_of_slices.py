"""A race scores contestants by group of items and on corrupted images, as a loop by hand over the same items does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fairlap
import numpy as np
import pytest
from command_line import error_code, here
from fairlap.data.corruptions.corruption import corrupted_items
from fairlap.errors import FairlapError
from fairlap.models.slices.corruptible import CorruptibleInput
from fairlap.request.fields.data.corruption import corruptions_in
from machine_marks import needs

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
needs("onnxruntime")

ITEMS, SIDE, CLASSES, BATCH = 45, 8, 4, 4
DRAWN = np.random.default_rng(0)
IMAGES = DRAWN.random((ITEMS, 1, SIDE, SIDE)).astype(np.float32)
WEIGHTS = DRAWN.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
KINDS = np.where(np.arange(ITEMS) % 3 == 0, "night", "day")
CORRUPTIONS = corruptions_in(["gaussian_noise:3", "contrast:4"])


def best(images: np.ndarray) -> np.ndarray:
    found: np.ndarray = (images.reshape(len(images), -1).astype(np.float64) @ WEIGHTS).argmax(axis=1)
    return found


LABELS = np.where(DRAWN.random(ITEMS) < 0.2, (best(IMAGES) + 1) % CLASSES, best(IMAGES))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from onnx import TensorProto, helper, numpy_helper

    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["scores"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1, SIDE, SIDE])
    y = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(WEIGHTS, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", IMAGES)
    lines = [f"{number},{label},{kind}" for number, (label, kind) in enumerate(zip(LABELS, KINDS, strict=True))]
    (tmp_path / "items.csv").write_text("\n".join(["item,class,kind", *lines]))
    return tmp_path / "m.onnx"


def given(folder: Path) -> tuple[Any, ...]:
    of_items = ("--inputs", folder / "x.npy", "--labels", f"{folder}/items.csv:class", "--metric", "top1")
    return (
        *of_items,
        "--batch",
        BATCH,
        "--blocks",
        "1",
        "--seconds",
        "0.05",
        "--threads",
        "1",
        "--no-store",
        "--quiet",
    )


@pytest.mark.slow
def test_scores_by_group_and_on_corrupted_images_are_those_by_hand(model: Path, tmp_path: Path) -> None:
    names = ",".join(each.text for each in CORRUPTIONS)
    slices = ("--groups", f"{tmp_path}/items.csv:kind", "--corrupt", names)
    out = ("-o", tmp_path / "rows.jsonl")
    done = here("compare", model, "--on", "onnxruntime,openvino", *given(tmp_path), *slices, *out)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    ran = [row for row in rows if row["outcome"] != "not_installed"]
    assert ran
    assert {row["outcome"] for row in ran} == {"finished"}, [row["message"] for row in ran]
    for row in ran:
        for group in row["group_scores"]["top1"]["groups"]:
            inside = group["name"] == KINDS
            assert group["score"]["value"] == pytest.approx((best(IMAGES) == LABELS)[inside].mean())
            assert group["score"]["items"] == int(inside.sum())
        of = CorruptibleInput("x", "first", 0, 1)
        for each in CORRUPTIONS:
            right = best(corrupted_items(IMAGES, 0, each, of)) == LABELS
            found = row["corrupted_scores"]["top1"]["corruptions"][each.name]["by_severity"][str(each.severity)]
            assert found["value"] == pytest.approx(right.mean())
            assert found["value"] < row["scores"]["top1"]["value"]
    if len(ran) > 1:
        other = next(row for row in ran if row["contestant"] != "onnxruntime")
        assert other["group_scores"]["top1"]["against"] == other["corrupted_scores"]["top1"]["against"] == "onnxruntime"
        assert other["corrupted_scores"]["top1"]["mean_corruption_error"] == 1
    assert "night" in done.stdout
    assert "gaussian_noise" in done.stdout


@pytest.mark.slow
def test_what_does_not_fit_is_refused_before_anything_runs(model: Path, tmp_path: Path) -> None:
    options = ("compare", model, "--on", "onnxruntime", *given(tmp_path))
    for wrong, code in (
        (("--groups", f"{tmp_path}/items.csv:none"), "E_METRIC"),
        (("--corrupt", "typos"), "E_CORRUPTION"),
        (("--corrupt", "fgo"), "E_CORRUPTION"),
    ):
        done = here(*options, *wrong)
        assert (done.returncode, error_code(done)) == (2, code)
    done = here("compare", "mlp", "--on", "onnxruntime", "--no-store", "--quiet", "--corrupt", "fog")
    assert (done.returncode, error_code(done)) == (2, "E_METRIC")
    dark: dict[str, Any] = {"inputs": {"x": IMAGES * 4 - 2}, "labels": LABELS, "metric": "top1", "batch": BATCH}
    with pytest.raises(FairlapError) as refused:
        fairlap.compare(str(model), on="onnxruntime", corrupt="fog", **dark)
    assert refused.value.code == "E_CORRUPTION"

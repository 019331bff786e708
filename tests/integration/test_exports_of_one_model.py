"""Files of one network that the frameworks' own exporters wrote race together, and a wrong one is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import SHORT
from command_line import fairlap as run
from exported_files import CHANNELS, CLASSES, SIZE, answers_by_hand, keras_net, torch_net, weights
from fairlap.launch.opened_source import opened
from fairlap.launch.own_slopes import slopes_of
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.training.reference import Batch
from fairlap.race.equal_work.material_sources import seeds_of_inputs
from fairlap.request.fields.source import Source

pytestmark = [pytest.mark.slow, pytest.mark.sanitized, pytest.mark.timeout(900), pytest.mark.usefixtures("own_cache")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write what the exporters of four frameworks make of the same weights, right and wrong."""
    for module in ("torch", "onnxscript", "tensorflow", "keras", "openvino", "ai_edge_litert"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    folder = tmp_path_factory.mktemp("exports")
    torch_net(folder / "net")
    keras_net(folder / "net")
    torch_net(folder / "weight", change="weight")
    torch_net(folder / "swapped", change="swapped")
    keras_net(folder / "raw", change="no softmax")
    return folder


def rows_of(files: Path, named: str, on: str, tmp_path: Path, *options: str) -> dict[str, dict[str, Any]]:
    done = run("compare", named, "--on", on, *options, *SHORT, "-o", tmp_path / "rows.jsonl", cwd=files, timeout_s=400)
    assert done.returncode in (0, 1), done.stderr
    return {row["contestant"]: row for row in map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())}


def test_every_file_races_in_the_frameworks_that_read_it(files: Path, tmp_path: Path) -> None:
    named = "net.onnx,net.pt2,net.jit,net.xml,net.keras,net_saved/,net.tflite"
    on = "onnxruntime,openvino,torch,tensorflow:graph,litert"
    rows = rows_of(files, named, on, tmp_path, "--trust")
    assert set(rows) == {
        *("onnxruntime:file=net.onnx", "openvino:file=net.onnx", "openvino:file=net.xml"),
        *("openvino:file=net_saved", "openvino:file=net.tflite", "litert:file=net.tflite"),
        *("torch:file=net.pt2", "torch:file=net.jit", "torch:file=net.keras"),
        *("tensorflow:graph:file=net.keras", "tensorflow:graph:file=net_saved"),
    }
    for name, row in rows.items():
        assert row["outcome"] == "finished", (name, row["message"])
        assert 0 < row["error_relative"] < 1e-6
        assert row["latency_p50_ns"]["value"] > 0
        assert row["route"].startswith("native")
        assert ("NCHW to NHWC" in row["route"]) == any(each in name for each in ("keras", "saved", "tflite"))
        assert "W_NO_REFERENCE" not in [warning["code"] for warning in row["warnings"]]


def test_each_wrong_export_is_named_with_its_output_and_distance(files: Path, tmp_path: Path) -> None:
    named = "net.onnx,weight.xml,swapped.onnx,raw.tflite"
    rows = rows_of(files, named, "onnxruntime,openvino,litert", tmp_path)
    right = {name for name in rows if name.endswith("net.onnx")}
    assert right == {"onnxruntime:file=net.onnx", "openvino:file=net.onnx"}
    for name, row in rows.items():
        if name in right:
            assert row["outcome"] == "finished", row["message"]
            continue
        assert (row["outcome"], row["code"]) == ("disqualified", "E_OUTPUT"), name
        assert row["error_relative"] > 1e-3
    assert len(rows) == len(right) + 1 + 2 + 2


def test_without_float64_the_files_that_agree_are_the_reference(files: Path, tmp_path: Path) -> None:
    for suffix in (".xml", ".bin"):
        (files / "same").with_suffix(suffix).write_bytes((files / "net").with_suffix(suffix).read_bytes())
    sizes = ("--shapes", f"image:2x3x{SIZE}x{SIZE}")
    rows = rows_of(files, "weight.xml,net.xml,same.xml", "openvino", tmp_path, *sizes)
    outcomes = {name: row["outcome"] for name, row in rows.items()}
    assert outcomes == {
        "openvino:file=weight.xml": "disqualified",
        "openvino:file=net.xml": "finished",
        "openvino:file=same.xml": "finished",
    }
    for row in rows.values():
        assert "W_NO_REFERENCE" in [warning["code"] for warning in row["warnings"]]


def test_every_file_gets_the_same_inputs_and_answers_in_its_own_layout(files: Path) -> None:
    source = Source("net.onnx,net.tflite", str(files / "net.onnx"), exports=(str(files / "net.tflite"),))
    seeds = seeds_of_inputs(0)
    first, _ = opened(source, seeds)
    other, bundle = opened(source.of_file("net.tflite"), seeds)
    given = safetensors.read(inputs_file(first, "changed"))["image"]
    [turned] = safetensors.read(inputs_file(other, "changed")).values()
    assert given.shape == (2, 3, SIZE, SIZE)
    np.testing.assert_array_equal(turned, given.transpose(0, 2, 3, 1))
    scores, boxes = answers_by_hand(given)
    expected = safetensors.read(reference_file(first, "changed"))
    np.testing.assert_allclose(expected["scores"], scores, rtol=1e-10)
    np.testing.assert_allclose(expected["boxes"], boxes, rtol=1e-10)
    of_other = safetensors.read(reference_file(other, "changed"))
    assert {tensor.name for tensor in bundle.spec.outputs} == {"output_0", "output_1"}
    np.testing.assert_allclose(of_other["output_0"], scores, rtol=1e-10)
    np.testing.assert_allclose(of_other["output_1"], boxes, rtol=1e-10)


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write files of a network with one output, and one with another weight."""
    for module in ("torch", "onnxscript", "tensorflow", "keras", "openvino", "ai_edge_litert"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    folder = tmp_path_factory.mktemp("learnt")
    torch_net(folder / "net", change="one output")
    keras_net(folder / "net", change="one output")
    changed_weight(folder / "net.onnx", folder / "weight.onnx")
    return folder


def changed_weight(file: Path, to: Path) -> None:
    import onnx

    model = onnx.load(file)
    [kernel] = [each for each in model.graph.initializer if len(each.dims) == 4]
    values = onnx.numpy_helper.to_array(kernel).copy()
    values[1, 2, 0, 1] += 0.25
    kernel.CopyFrom(onnx.numpy_helper.from_array(values, kernel.name))
    onnx.save(model, to)


def loss_by_hand(held: dict[str, np.ndarray], image: np.ndarray, classes: np.ndarray) -> float:
    """Take the mean over the rows, of the answers as scores of the classes."""
    scores = answers_by_hand(image, held)[0]
    shares = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    return -float(shares[np.arange(len(classes)), classes].mean())


def test_gradients_of_two_files_race_and_are_those_of_differences_by_hand(learnt: Path, tmp_path: Path) -> None:
    named = "net.onnx,net.keras,net.pt2,weight.onnx"
    rows = rows_of(learnt, named, "torch,jax", tmp_path, "--mode", "grad", "--loss", "cross_entropy")
    right = {f"{on}:file=net.{suffix}" for on in ("torch", "jax") for suffix in ("onnx", "keras")}
    others = {f"{on}:file=weight.onnx" for on in ("torch", "jax")} | {"torch:file=net.pt2"}
    assert set(rows) == right | others
    for name in right:
        assert rows[name]["outcome"] == "finished", rows[name]["message"]
        assert rows[name]["mode"] == "grad"
    for name in others:
        assert rows[name]["outcome"] == "unsupported", rows[name]["message"]
        assert len(rows[name]["message"]) > len(name)


def test_the_reference_of_each_file_has_the_gradients_by_hand(learnt: Path) -> None:
    source = Source(
        "net.onnx,net.keras", str(learnt / "net.onnx"), exports=(str(learnt / "net.keras"),), loss="cross_entropy"
    )
    own = weights()
    step = 1e-6
    for name in source.file_names:
        folder, bundle = opened(source.of_file(name), seeds_of_inputs(0))
        arrays = dict(safetensors.read(inputs_file(folder, "inputs")))
        classes = arrays.pop("labels")
        arrays.pop("batch_labels")
        held = {each: array.astype(np.float64) for each, array in safetensors.read(weights_file(folder)).items()}
        inputs = {each: array.astype(np.float64) for each, array in arrays.items()}
        found = slopes_of(folder).slopes(held, Batch(inputs, classes), training=False)
        [image] = arrays.values()
        image = image if image.shape[1] == 3 else image.transpose(0, 3, 1, 2)
        gradients = {array.shape: array for array in found.gradients.values()}
        by_scores = gradients.get((CLASSES, CHANNELS), gradients.get((CHANNELS, CLASSES)))
        assert by_scores is not None
        by_scores = by_scores if by_scores.shape == (CLASSES, CHANNELS) else by_scores.T
        assert np.isclose(found.loss, loss_by_hand(own, image, classes), rtol=1e-9)
        for place in ((0, 0), (2, 3), (4, 1)):
            moved = []
            for by in (step, -step):
                scores = own["scores"].astype(np.float64)
                scores[place] += by
                moved.append(loss_by_hand({**own, "scores": scores}, image, classes))
            assert np.isclose(by_scores[place], (moved[0] - moved[1]) / (2 * step), rtol=1e-4, atol=1e-9)
        assert {weight.name for weight in bundle.spec.weights if weight.trained} == set(found.gradients)

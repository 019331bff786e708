"""Files of one network that the frameworks' own exporters wrote race together, and a wrong one is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import fairlap as run
from exported_files import SIZE, answers_by_hand, keras_net, torch_net
from fairlap.launch.opened_source import opened
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import inputs_file, reference_file
from fairlap.race.equal_work.material_sources import seeds_of_inputs
from fairlap.request.fields.source import Source

pytestmark = [pytest.mark.slow, pytest.mark.sanitized, pytest.mark.timeout(900)]

SHORT = ("--blocks", "1", "--seconds", "0.05", "--threads", "1", "--no-store", "--quiet")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


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
    rows = rows_of(files, "raw.tflite,net.tflite,net.xml", "openvino,litert", tmp_path, "--batch", "2")
    outcomes = {name: row["outcome"] for name, row in rows.items()}
    assert outcomes == {
        "openvino:file=raw.tflite": "disqualified",
        "litert:file=raw.tflite": "disqualified",
        "openvino:file=net.tflite": "finished",
        "litert:file=net.tflite": "finished",
        "openvino:file=net.xml": "finished",
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

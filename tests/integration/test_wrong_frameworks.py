"""A release of a framework that computes something wrong is found by its answers."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from command_line import SHORT
from command_line import fairlap as run
from onnx_files import drawn

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
CHANNELS, MORE = 24, 28
pytestmark = pytest.mark.slow


def residual_block(path: Path) -> Path:
    """Write what MediaPipe's face detectors begin with: a block that adds channels of zeros, then maxima of four."""
    make, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    arrays = {
        "by channel": drawn(CHANNELS, 1, 3, 3),
        "across": drawn(MORE, CHANNELS, 1, 1),
        "bias": drawn(MORE),
    }
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    held.append(onnx.helper.make_tensor("pads", onnx.TensorProto.INT64, [8], [0] * 7 + [MORE - CHANNELS]))
    first, last = {"perm": [0, 3, 1, 2]}, {"perm": [0, 2, 3, 1]}  # channels
    nodes = [
        make("Relu", ["image"], ["positive"]),
        make("Pad", ["positive", "pads"], ["padded"]),
        make("Transpose", ["positive"], ["turned"], **first),
        make("Conv", ["turned", "by channel"], ["near"], group=CHANNELS, pads=[1, 1, 1, 1]),
        make("Conv", ["near", "across", "bias"], ["mixed"]),
        make("Transpose", ["mixed"], ["back"], **last),
        make("Add", ["padded", "back"], ["sum"]),
        make("Relu", ["sum"], ["rectified"]),
        make("Transpose", ["rectified"], ["turned again"], **first),
        make("MaxPool", ["turned again"], ["maxima"], kernel_shape=[2, 2], strides=[2, 2]),
        make("Transpose", ["maxima"], ["out"], **last),
    ]
    shapes = {"image": [1, 64, 64, CHANNELS], "out": [1, 32, 32, MORE]}
    ends = {name: info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    graph = onnx.helper.make_graph(nodes, "block", [ends["image"]], [ends["out"]], held)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def test_wrong_maxima_of_xla_are_found_and_are_right_without_ynnpack(tmp_path: Path) -> None:
    try:
        installed = version("jax")
    except PackageNotFoundError:
        pytest.skip("`make test` installs jax and runs this")
    if installed != "0.10.2":
        pytest.skip(f"jax {installed} may be right: it's 0.10.2 whose fused maxima are wrong")
    model, rows = residual_block(tmp_path / "block.onnx"), tmp_path / "rows.jsonl"
    done = run("compare", model, "--on", "jax,jax:ynnpack=off,onnxruntime", *SHORT, "-o", rows, cwd=tmp_path)
    found = {row["contestant"]: row["code"] for row in map(json.loads, rows.read_text().splitlines())}
    assert found == {"jax": "E_OUTPUT", "jax:ynnpack=off": "", "onnxruntime": ""}, done.stderr

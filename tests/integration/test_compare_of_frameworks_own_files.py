"""A SavedModel and a TorchScript file go through a whole race from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import SHORT, error_code
from command_line import here as run
from onnx_files import drawn

pytestmark = [pytest.mark.usefixtures("own_cache"), pytest.mark.slow]


def rows_of(tmp_path: Path, *arguments: object) -> dict[str, dict[str, Any]]:
    done = run("compare", *arguments, *SHORT, "-o", tmp_path / "rows.jsonl")
    assert done.returncode == 0, done.stderr
    return {row["contestant"]: row for row in map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())}


def require_right(row: dict[str, Any]) -> None:
    assert row["outcome"] == "finished", row
    assert row["latency_p50_ns"]["value"] > 0
    assert 0 < row["error_relative"] < 1e-6


def saved_model(folder: Path) -> Path:
    """Save a convolution, a pooling, and a matrix product."""
    import tensorflow as tf

    class Net(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.kernel, self.matrix = tf.Variable(drawn(3, 3, 2, 4)), tf.Variable(drawn(4, 5))

        @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, 2), name="image")])  # type: ignore[untyped-decorator]
        def __call__(self, image: Any) -> dict[str, Any]:
            hidden = tf.nn.relu(tf.nn.conv2d(image, self.kernel, 2, "SAME"))
            return {"scores": tf.matmul(tf.reduce_mean(hidden, [1, 2]), self.matrix)}

    tf.saved_model.save(Net(), str(folder))
    return folder


@pytest.mark.thorough
def script(file: Path) -> Path:
    """Two inputs, one of which gates the other."""
    import torch

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

        def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
            return self.second(torch.tanh(self.first(x)) * torch.sigmoid(gate))

    torch.manual_seed(0)
    torch.jit.save(torch.jit.trace(Net().eval(), (torch.randn(3, 8), torch.randn(3, 16))), file)
    return file


def test_a_saved_model_is_raced_where_it_has_a_route(tmp_path: Path) -> None:
    for module in ("tensorflow", "openvino", "ai_edge_litert"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    folder = saved_model(tmp_path / "net")
    on = ("tensorflow:graph", "tensorflow:xla", "openvino", "litert")
    rows = rows_of(tmp_path, folder, "--batch", "2", "--on", ",".join((*on, "onnxruntime")))
    for name in on:
        require_right(rows[name])
    assert rows["tensorflow:graph"]["route"] == rows["openvino"]["route"] == "native"
    assert rows["litert"]["route"] != "native"
    assert (rows["onnxruntime"]["outcome"], rows["onnxruntime"]["code"]) == ("unsupported", "E_UNSUPPORTED")


def test_torchscript_is_raced_by_everything_that_a_program_reaches(tmp_path: Path) -> None:
    for module in ("torch", "openvino", "onnxruntime", "onnxscript", "jax", "tensorflow"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    file = script(tmp_path / "net.pt")
    on = ("torch", "onnxruntime", "openvino", "jax", "tensorflow:graph")
    rows = rows_of(tmp_path, file, "--trust", "--shapes", "x:3x8,gate:3x16", "--on", ",".join(on))
    for name in on:
        require_right(rows[name])
    assert len({rows[name]["route"] for name in on}) >= 3
    assert rows["jax"]["conversion_s"]["value"] > 0


def test_torchscript_without_shapes_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    file = script(tmp_path / "net.pt")
    for options, code in (((), "E_SOURCE_TRUST"), (("--trust",), "E_SHAPES")):
        done = run("compare", file, "--on", "torch", *options, *SHORT)
        assert (done.returncode, error_code(done)) == (2, code)

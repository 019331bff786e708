"""Depthwise convolutions in TensorFlow's graph mode, which fuses them with a bias and an activation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fairlap.models.onnx_import import build, load_graph

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")


@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [0, 0, 1, 1], [2, 0, 0, 2], [0, 0, 0, 0]])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [8, 9])
def test_pads_of_all_kinds_are_those_of_the_reference(tmp_path: Path, pads: list[int], stride: int, size: int) -> None:
    tf = pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(1)
    arrays = {
        "kernel": random.normal(size=(4, 1, 3, 3)).astype(np.float32),
        "bias": random.normal(size=4).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["image", "kernel", "bias"], ["sum"], group=4, pads=pads, strides=[stride, stride]),
        helper.make_node("Relu", ["sum"], ["result"]),
    ]
    graph = helper.make_graph(
        nodes,
        "depthwise",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [2, 4, size, size])],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    path = tmp_path / "depthwise.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    loaded = load_graph(path)
    image = random.normal(size=(2, 4, size, size)).astype(np.float32)
    reference, model = build(loaded, "numpy"), build(loaded, "tensorflow")
    (wanted,) = reference(reference.prepare(loaded.weights), {"image": image}).values()
    variables = {name: tf.Variable(array) for name, array in model.prepare(loaded.weights).items()}
    call = tf.function(lambda inputs: model(variables, inputs), autograph=False)
    (found,) = call({"image": tf.constant(image)}).values()
    assert np.allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)

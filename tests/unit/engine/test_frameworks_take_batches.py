"""Every framework that is installed takes a batch without a copy, each in a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

_FEED = """
import gc, sys
import numpy as np
from fairlap.engine import Feeder
samples = np.arange(48, dtype=np.float32).reshape(12, 4)
def batches(slots=2):
    with Feeder(samples, batch=4, slots=slots) as feeder:
        for batch in feeder:
            yield batch, samples[4 * batch.number : 4 * batch.number + 4]
            batch.release()
            gc.collect()
"""

_TAKING = {
    "torch": """
import torch
for batch, wanted in batches():
    tensor = torch.from_dlpack(batch)
    assert tensor.data_ptr() == batch.pointer
    assert torch.equal(tensor, torch.from_numpy(wanted))
    del tensor
with Feeder(samples, batch=4, dtype="bfloat16") as feeder:
    for batch in feeder:
        tensor = torch.from_dlpack(batch)
        assert tensor.dtype == torch.bfloat16
        start = 4 * batch.number
        assert torch.equal(tensor, torch.from_numpy(samples[start : start + 4]).to(torch.bfloat16))
        del tensor
        batch.release()
""",
    "jax": """
import jax
for batch, wanted in batches():
    array = jax.dlpack.from_dlpack(batch)
    assert array.unsafe_buffer_pointer() == batch.pointer
    assert np.array_equal(np.asarray(array), wanted)
    del array
""",
    "tensorflow": """
import tensorflow as tf
for batch, wanted in batches():
    tensor = tf.experimental.dlpack.from_dlpack(batch.__dlpack__())
    assert np.array_equal(tensor.numpy(), wanted)
    del tensor
""",
    "onnxruntime": """
import onnx, onnxruntime
from onnx import TensorProto, helper
graph = helper.make_graph(
    [helper.make_node("Identity", ["x"], ["y"])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 4])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
for batch, wanted in batches():
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.dtype(batch.dtype), batch.shape, batch.pointer)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], wanted)
""",
    "openvino": """
import openvino

pytestmark = pytest.mark.slow
for batch, wanted in batches():
    view = np.from_dlpack(batch)
    tensor = openvino.Tensor(view, shared_memory=True)
    assert tensor.data.ctypes.data == batch.pointer
    assert np.array_equal(tensor.data, wanted)
    del tensor, view
""",
}


@pytest.mark.sanitized
@pytest.mark.parametrize("framework", sorted(_TAKING))
def test_a_framework_takes_batches_without_a_copy_and_gives_the_slots_back(framework: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed here; `make test` installs it and runs this")
    program = [sys.executable, "-W", "error::ResourceWarning", "-c", _FEED + _TAKING[framework] + "\nprint('taken')"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("taken\n")

"""ONNX files whose weights are in a file of external data, and the memory that a fresh process needs to open one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

WEIGHTS = "weights.bin"
_OPENED = """
import sys
from pathlib import Path
import msgspec
from fairlap.models.sources.opening import Order, opened_folder
order = msgspec.json.decode(sys.argv[1].encode(), type=Order)
print(opened_folder(order))
status = Path("/proc/self/status").read_text()
print(1024 * int(status.partition("VmHWM:")[2].split()[0]))
"""


def layer_weights(layers: int, width: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    scale = np.float32(width**-0.5)
    return {f"w{number}": rng.standard_normal((width, width), np.float32) * scale for number in range(layers)}


def by_hand(weights: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Compute the model in the precision of what is given: tanh of products, and the first matrix once more."""
    for name in (*weights, next(iter(weights))):
        x = np.tanh(x @ weights[name])
    return x


def layers_beside(path: Path, weights: Mapping[str, np.ndarray]) -> Path:
    """Write the model of ``by_hand``, with every weight in the file beside it."""
    import onnx
    from onnx import TensorProto, helper

    width = next(iter(weights.values())).shape[0]
    nodes, last, initializers = [], "x", []
    with (path.parent / WEIGHTS).open("wb") as file:
        for name, array in weights.items():
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape, data_location=1)
            for key, value in {"location": WEIGHTS, "offset": file.tell(), "length": array.nbytes}.items():
                tensor.external_data.add(key=key, value=str(value))
            file.write(array.data)
            initializers.append(tensor)
    for number, name in enumerate((*weights, next(iter(weights)))):
        nodes.append(helper.make_node("MatMul", [last, name], [f"product {number}"]))
        last = f"h{number}"
        nodes.append(helper.make_node("Tanh", [f"product {number}"], [last]))
    nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", width])],
        initializers,
    )
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def opened_in_a_fresh_process(order: bytes, cache: Path) -> tuple[Path, int]:
    """Return the folder of its bundle, and the most memory that was resident: VmHWM."""
    environment = {**os.environ, "FAIRLAP_CACHE": str(cache), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _OPENED, order.decode()], env=environment, stdout=subprocess.PIPE, check=True
    )
    folder, peak = done.stdout.decode().splitlines()[-2:]
    return Path(folder), int(peak)

"""What the planted mistakes for runtimes of ONNX files make their files of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_OPSET, _IR_VERSION = 17, 8  # of 2021, which every runtime reads


def zeros(*shape: int) -> npt.NDArray[np.float32]:
    return np.zeros(shape, np.float32)


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], name: str, **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(kind, inputs, outputs, name, **attributes)


def graph(
    nodes: Sequence[Any], inputs: Mapping[str, Sequence[int | str]], constants: Mapping[str, npt.NDArray[Any]]
) -> bytes:
    """Make a file whose inputs are float32, and whose output is ``y``."""
    from onnx import TensorProto, helper, numpy_helper

    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    whole = helper.make_graph(list(nodes), "planted", given, [output], held)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    encoded: bytes = model.SerializeToString()
    return encoded

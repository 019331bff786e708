"""The weights as they stand in the bytes of an ONNX model, for runtimes that do not give them back."""

from __future__ import annotations

from typing import Any

import numpy as np


def weights_of_model(model: bytes) -> dict[str, Any]:
    """Initializers under the spec's names; constants that a graph needs beside carry a slash."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load_model_from_string(model).graph
    return {
        each.name: np.ascontiguousarray(numpy_helper.to_array(each))
        for each in graph.initializer
        if not each.name.startswith("constant/")
    }

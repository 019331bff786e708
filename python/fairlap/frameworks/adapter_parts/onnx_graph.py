"""The ONNX graph of a model as bytes, and the weights in these bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers
from fairlap.models.workload import Arrays, Workload


def serialized_graph(work: Workload, weights: Arrays) -> bytes:
    graph: bytes = work.implementation("onnx").build(weights, work.batch).SerializeToString()
    return graph


def weights_in(graph: bytes, given: Arrays) -> Answers:
    """The initializers. One that equals its weight is returned as that weight, to avoid a second copy in memory."""
    import onnx
    from onnx import numpy_helper

    held: dict[str, Any] = {}
    for initializer in onnx.load_from_string(graph).graph.initializer:
        if initializer.name in given:
            array, weight = numpy_helper.to_array(initializer), given[initializer.name]
            held[initializer.name] = weight if np.array_equal(array, weight) else array
    return held

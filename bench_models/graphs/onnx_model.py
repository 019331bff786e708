"""The graphs as ONNX."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from fairlap.bench_models.graphs.net import GraphModel, Step
from fairlap.bench_models.onnx_graph import model_of
from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.files.load import graph_of_model
from fairlap.models.onnx_import.graph import Graph
from onnx import helper, numpy_helper


class Implementation:
    def __init__(self, model: GraphModel) -> None:
        self._net, self._spec = model.NET, model.SPEC

    def build(self, weights: Arrays, batch: int) -> Any:
        return model_of(self._spec, [node_of(each) for each in self._net.steps], weights, batch)


@cache
def graph_at(model: GraphModel, batch: int) -> Graph:
    """Read the graph as the importer takes it. Its weights are zeros, in whose place come others."""
    zeros = {each.name: np.zeros(each.shape, np.float32) for each in model.SPEC.weights}
    return graph_of_model(Implementation(model).build(zeros, batch))


def node_of(step: Step) -> Any:
    attributes = dict(step.attributes)
    if step.values is not None:
        attributes["value"] = numpy_helper.from_array(np.asarray(step.values(), step.dtype))
    return helper.make_node(step.operator, step.inputs, step.outputs, name=f"node_{step.outputs[0]}", **attributes)

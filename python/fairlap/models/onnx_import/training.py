"""A graph as it is in training: each batch normalisation by the statistics of the batch, which move its averages.

As ONNX defines ``training_mode=1``: the averages move by ``1 - momentum`` of the way to the batch's mean and to its
variance, that of a population.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fairlap.models.onnx_import.graph import Graph, Node

_NORMALISATION = "BatchNormalization"
IN_TRAINING = "BatchNormalizationInTraining"


def averages_of(graph: Graph) -> list[str]:
    """Name the averages of every batch normalisation: of each the mean and the variance."""
    return [name for node in _normalisations(graph) for name in node.inputs[3:5]]


def why_no_batches(graph: Graph) -> str:
    """Say why its batch normalisation cannot be by the batch; empty where it can or there is none."""
    averages = averages_of(graph)
    if len(averages) > 2 * sum(node.operator == _NORMALISATION for node in graph.nodes):
        return "a batch normalisation is in a branch or a loop, where nothing could move its averages"
    if lacking := [name for name in averages if name not in graph.weights]:
        return f"{lacking[0]}, an average of its batch normalisation, is no array of the file, so nothing could move it"
    if shared := [name for name in averages if averages.count(name) > 1]:
        return f"several of its batch normalisations would move {shared[0]}"
    return ""


def in_training(graph: Graph) -> tuple[Graph, Mapping[str, str]]:
    """Return the graph with its new averages as further outputs, and the names of these outputs by the averages'."""
    moved = {name: f"{name} after the step" for name in averages_of(graph)}
    nodes = tuple(_by_the_batch(node, moved) if node.operator == _NORMALISATION else node for node in graph.nodes)
    tensors = {after: replace(graph.values[name], name=after) for name, after in moved.items()}
    outputs = (*graph.outputs, *tensors.values())
    return replace(graph, nodes=nodes, outputs=outputs, values={**graph.values, **tensors}), moved


def _normalisations(graph: Graph) -> list[Node]:
    return [node for each in graph.graphs() for node in each.nodes if node.operator == _NORMALISATION]


def _by_the_batch(node: Node, moved: Mapping[str, str]) -> Node:
    outputs = (node.outputs[0], *(moved[name] for name in node.inputs[3:5]))
    return replace(node, operator=IN_TRAINING, outputs=outputs)

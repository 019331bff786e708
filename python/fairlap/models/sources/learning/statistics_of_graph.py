"""Arrays of their own for the statistics of batch normalisation in an ONNX graph that is differentiated.

PyTorch's exporter writes arrays of equal values once: a net that was not trained yet has one for its biases and its
running means, of all layers. What is trained would then move what is not, and each layer the averages of another.
"""

from __future__ import annotations

from typing import Any

from fairlap.models.onnx_import.subgraphs import graphs_under

_STATISTICS = (3, 4)  # places among the inputs of a BatchNormalization


def give_statistics_their_own_arrays(model: Any) -> None:
    """Copy, in the model itself, each array that is a statistic through Identity, or serves as something else too."""
    graphs = list(graphs_under(model.graph))
    nodes = [node for graph in graphs for node in graph.node]
    arrays = {tensor.name: tensor for graph in graphs for tensor in graph.initializer}
    arrays |= {node.output[0]: value for node in nodes if (value := _constant(node)) is not None}
    same = {node.output[0]: node.input[0] for node in nodes if node.op_type == "Identity"}
    others = {name for node in nodes for place, name in enumerate(node.input) if not _is_statistic(node, place)}
    others |= {value.name for graph in graphs for value in graph.output}
    taken = {*arrays, *others, *(name for node in nodes for name in node.output)}
    for node in nodes:
        for place, name in enumerate(node.input):
            origin = _origin(name, same)
            if not _is_statistic(node, place) or origin not in arrays:
                continue
            if origin == name and name not in others:
                others.add(name)  # of any further statistic
                continue
            copy = model.graph.initializer.add()
            copy.CopyFrom(arrays[origin])
            copy.name = _free(f"{name} of {node.output[0]}", taken)
            taken.add(copy.name)
            node.input[place] = copy.name


def _is_statistic(node: Any, place: int) -> bool:
    return node.op_type == "BatchNormalization" and place in _STATISTICS


def _constant(node: Any) -> Any | None:
    values = [each.t for each in node.attribute if each.name == "value"] if node.op_type == "Constant" else []
    return values[0] if values else None


def _origin(name: str, same: dict[str, str]) -> str:
    while name in same:
        name = same[name]
    return name


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name

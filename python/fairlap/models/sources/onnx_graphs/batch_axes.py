"""Which size of an input is the batch where it is not the first one.

The name of a size may say it. Else a recurrence does, which takes ``(steps, batch, features)`` and states of
``(directions, batch, features)``: its inputs are followed backwards, through operators that keep the order of sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_RECURRENCES = ("LSTM", "GRU", "RNN")
_SEQUENCES_AND_STATES = (0, 5, 6)  # places of a recurrence's inputs
_STANDARD = ("", "ai.onnx")
_KEEPS_ORDER = {
    **dict.fromkeys(("Cast", "Dropout", "Identity", "LayerNormalization", "MatMul"), (0,)),
    **dict.fromkeys(("Clip", "Elu", "Erf", "Gelu", "LeakyRelu", "Neg", "Relu", "Sigmoid", "Tanh"), (0,)),
    **dict.fromkeys(("Add", "Div", "Mul", "Sub"), (0, 1)),
    "Gather": (1,),  # ids that index a table
}
"""By operator, which of its inputs have the batch where its result has it."""


def batch_axes(model: Any, values: list[Any]) -> dict[str, int]:
    """Find, by input, the axis of those whose batch is another size than the first.

    ``values`` are the inputs as the file has them, with its names of sizes. What contradicts itself is left out.
    """
    found: dict[str, set[int]] = {}
    for value in values:
        axes = value.type.tensor_type.shape.dim
        found[value.name] = {place for place, axis in enumerate(axes) if "batch" in axis.dim_param.lower()}
    if not any(found.values()):
        producers = {output: node for node in model.graph.node for output in node.output}
        for name, axis in _of_recurrences(model):
            for origin, place in _origins(name, axis, producers):
                if origin in found:
                    found[origin].add(place)
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in values}
    single = {name: axes.pop() for name, axes in found.items() if len(axes) == 1}
    return {name: axis for name, axis in single.items() if 0 < axis < ranks[name]}


def _of_recurrences(model: Any) -> Iterator[tuple[str, int]]:
    for node in model.graph.node:
        if node.op_type not in _RECURRENCES or node.domain not in _STANDARD:
            continue
        batch_first = any(each.name == "layout" and each.i for each in node.attribute)
        for place in _SEQUENCES_AND_STATES:
            if place < len(node.input) and node.input[place]:
                yield node.input[place], 0 if batch_first else 1


def _origins(name: str, axis: int, producers: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Trace what this size was, in each value that it comes from.

    A graph is not deeper than it has nodes.
    """
    waiting, seen = [(name, axis)], set()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        yield at
        name, axis = at
        if (node := producers.get(name)) is None or node.domain not in _STANDARD:
            continue
        if node.op_type == "Transpose":
            turned = [list(each.ints) for each in node.attribute if each.name == "perm"]
            if turned and axis < len(turned[0]):
                waiting.append((node.input[0], turned[0][axis]))
        else:
            waiting += [(node.input[place], axis) for place in _KEEPS_ORDER.get(node.op_type, ())]

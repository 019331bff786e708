"""Call an operator of the table for a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlap.errors import described
from fairlap.models.onnx_import.errors import ModelFileInvalid, OperatorsUnsupported
from fairlap.models.onnx_import.graph import Array, Node, Tensor
from fairlap.models.onnx_import.operators.registry import Resolve
from fairlap.models.onnx_import.operators.table import OPERATORS, Operator

MOST_SCALAR_OPERAND = 2**16  # elements of a shape, of a list of axes, ...


def as_numbers(array: Array) -> Any:
    """Turn an array into tuples of Python numbers."""
    if array.size > MOST_SCALAR_OPERAND:
        raise OperatorsUnsupported(f"an operand of {array.size} elements is not a shape or a list of axes")
    return _tuples(array.tolist())


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def attributes_of(
    node: Node,
    known: Mapping[str, Array],
    values: Mapping[str, Tensor],
    opset: int,
) -> tuple[dict[str, Any], list[str]]:
    """Collect the keywords that an operator is called with, and the inputs that are left for it."""
    operator = OPERATORS[node.operator]
    attributes = {name: value for name, value in node.attributes.items() if name not in operator.ignores}
    left = _take_known_inputs(operator, node, known, attributes)
    if operator.resolve is not None:
        attributes = _resolved(operator.resolve, attributes, node, values)
    filled = {
        "opset": opset,
        "count": len(node.outputs),
        "sizes": tuple(values[name].shape for name in node.outputs if name),
        "dtype": next((values[name].dtype for name in node.outputs if name), ""),
    }
    attributes.update({name: value for name, value in filled.items() if name in operator.accepts})
    if operator.refuse is not None and (reason := operator.refuse(attributes)):
        raise OperatorsUnsupported(f"{node.operator} {node.name!r}: {reason}")
    return attributes, left


def _take_known_inputs(
    operator: Operator, node: Node, known: Mapping[str, Array], attributes: dict[str, Any]
) -> list[str]:
    """Make known inputs attributes; return the others."""
    inputs = list(node.inputs)
    for name, place in operator.operands.items():
        if place < len(inputs) and inputs[place]:
            if inputs[place] not in known:
                raise OperatorsUnsupported(
                    f"{node.operator} {node.name!r} needs its input {name} when it is built, but that depends on data"
                )
            attributes[name] = as_numbers(known[inputs[place]])
    for name, place in operator.scalars.items():
        array = known.get(inputs[place]) if place < len(inputs) else None
        if array is not None and (array.ndim == 0 or (operator.layout == "elementwise" and array.size == 1)):
            attributes[name] = array.reshape(()).item()
            inputs[place] = ""
    left = [each for place, each in enumerate(inputs) if place not in operator.operands.values()]
    while left and not left[-1]:
        left.pop()
    return left


def _resolved(resolve: Resolve, attributes: dict[str, Any], node: Node, values: Mapping[str, Tensor]) -> dict[str, Any]:
    types = [values[name] if name else None for name in node.inputs]
    try:
        return resolve(attributes, types, [values[name] for name in node.outputs if name])
    except NotImplementedError as error:
        raise OperatorsUnsupported(f"{node.operator} {node.name!r}: {error}") from error
    except Exception as error:
        raise ModelFileInvalid(f"{node.operator} {node.name!r} is not valid: {described(error)}") from error


def check_attributes(operator: Operator, node: Node) -> None:
    unknown = [name for name in node.attributes if name not in operator.accepts]
    if unknown:
        raise OperatorsUnsupported(
            f"{node.operator} {node.name!r} has attributes that are unknown: {', '.join(unknown)}"
        )


def evaluate(
    library: Any,
    node: Node,
    known: Mapping[str, Array],
    values: Mapping[str, Tensor],
    opset: int,
) -> list[Array]:
    """Compute the results of a node whose inputs are all known."""
    attributes, inputs = attributes_of(node, known, values, opset)
    arrays = [library.constant(known[name]) if name else None for name in inputs]
    with np.errstate(all="ignore"):
        results = OPERATORS[node.operator].compute(library, *arrays, **attributes)
    results = results if isinstance(results, (tuple, list)) else (results,)
    return [np.asarray(each) for each in results]

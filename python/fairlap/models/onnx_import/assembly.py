"""Sort what folded nodes use into weights and constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from fairlap.models.array_files.npy_map import release
from fairlap.models.fp8_graphs.fp8_numbers import FP8
from fairlap.models.onnx_import.errors import OperatorsUnsupported
from fairlap.models.onnx_import.graph import Array, Folded, Node, bodies_of
from fairlap.models.onnx_import.libraries.numpy_library import is_floating
from fairlap.models.onnx_import.operators.table import OPERATORS

MOST_CHECKED = 2**23  # elements in which infinities are looked for: a mask of 2,896 tokens
DTYPES = frozenset(
    (
        "float16",
        "bfloat16",
        FP8,
        "float32",
        "float64",
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    )
)


def refuse_types(folded: Folded) -> None:
    unknown = {f"{tensor.dtype} ({name})" for name, tensor in folded.values.items() if tensor.dtype not in DTYPES}
    if unknown:
        raise OperatorsUnsupported(f"types that the importer lacks: {', '.join(sorted(unknown)[:10])}")


def weights_and_constants(
    used: Iterable[str], folded: Folded, arrays: Mapping[str, Array]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Of names that nodes use: arrays of the file that count as weights, and what else is known before a call."""
    operands = _operands(folded.nodes)
    weights: dict[str, Array] = {}
    constants: dict[str, Array] = {}
    for name in sorted(used):
        if name in arrays:
            kept = weights if name not in operands and _is_weight(arrays[name]) else constants
            kept[name] = arrays[name]
            release(arrays[name])  # one that is mapped was read to the end
        elif name in folded.known and name not in folded.computed:
            constants[name] = folded.known[name]
    return weights, constants


def _operands(nodes: Iterable[Node]) -> set[str]:
    """Find what must be known when building, or is not a weight."""
    found = set()
    for node in nodes:
        for place in OPERATORS[node.operator].operands.values():
            if place < len(node.inputs):
                found.add(node.inputs[place])
        if node.operator == "Pow":  # with another exponent it would be another model
            found.add(node.inputs[1])
        for body in bodies_of(node):
            found.update(_operands(body.nodes))
    return found


def _is_weight(array: Array) -> bool:
    """Learned numbers are floating-point or quantized to eight bits, and finite; a mask is not."""
    if array.ndim == 0:
        return False
    if array.dtype in (np.int8, np.uint8):
        return True
    if not is_floating(array.dtype):
        return False
    return array.size > MOST_CHECKED or bool(np.isfinite(array.astype(np.float32, copy=False)).all())

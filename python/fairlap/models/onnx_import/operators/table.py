"""The whole table; importing this module fills it. A new family of operators is one file and one line here."""

from __future__ import annotations

from fairlap.models.onnx_import.operators import (
    activations,
    control,
    elementwise,
    indexing,
    linear_algebra,
    quantization,
    reductions,
    resize,
    shapes,
)
from fairlap.models.onnx_import.operators.layers import attention, convolution, normalisation, pooling, recurrent
from fairlap.models.onnx_import.operators.registry import OPERATORS, Operator

FAMILIES = (
    elementwise,
    activations,
    reductions,
    shapes,
    indexing,
    linear_algebra,
    convolution,
    pooling,
    normalisation,
    attention,
    resize,
    quantization,
    recurrent,
    control,
)
INTERNAL = frozenset(("Linear", "FusedAttention", "BatchNormalizationInTraining"))
REWRITTEN = frozenset(("CastLike",))  # made another operator while loading
_CHOOSING = ("Identity", "Neg", "Abs", "Relu", "Clip", "Max", "Min", "Where", "MaxPool", "GlobalMaxPool")
EXACT = frozenset((*_CHOOSING, "If", "Loop", "Scan")) | {
    name for name, each in OPERATORS.items() if each.compute.__module__ in (shapes.__name__, indexing.__name__)
}
"""Operators that move or choose values, so that nothing is rounded, or whose bodies round for themselves."""
CONTROL_FLOW = frozenset(("If", "Loop", "Scan", "SequenceMap"))

__all__ = ["CONTROL_FLOW", "EXACT", "FAMILIES", "INTERNAL", "OPERATORS", "Operator", "claimed"]


def claimed() -> list[str]:
    """List the operators of ONNX that the importer accepts."""
    return sorted((OPERATORS.keys() | REWRITTEN) - INTERNAL)

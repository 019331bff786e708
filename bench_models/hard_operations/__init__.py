"""Operations on inputs with which digits are lost, by the function that each library has for them."""

from __future__ import annotations

from importlib.util import find_spec

from fairlap.models.operations.hard import Hard, Solve
from fairlap.models.operations.operation import Operation

EPSILON = 1e-5
"""Added to the variance of a layer norm."""

_OF_GRAPHS = ("onnx", "litert", "executorch")


def why_not(operation: Operation, framework: str, implementation: str) -> str:
    """Why a framework cannot do it, by its own name and by that of the implementation it runs; empty where it can."""
    assert isinstance(operation, Hard)
    if find_spec(f"{__name__}.{implementation}_model") is None:
        return f"{framework} has no implementation of {operation.kind} here"
    if isinstance(operation, Solve) and (implementation in _OF_GRAPHS or framework in _OF_GRAPHS):
        return f"{framework} has no operator that solves linear equations"
    return ""

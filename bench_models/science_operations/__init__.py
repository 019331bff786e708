"""Linear algebra, transforms, sparse products, random numbers, sorting and sums by segment, in three libraries."""

from __future__ import annotations

from importlib.util import find_spec

from fairlap.models.operations.operation import Operation

_CONVERTERS = ("litert", "executorch")  # which run another framework's implementation


def why_not(operation: Operation, framework: str, implementation: str) -> str:
    """Why a framework cannot do it, by its own name and by that of the implementation it runs; empty where it can."""
    if framework in _CONVERTERS or find_spec(f"{__name__}.{implementation}_model") is None:
        return f"{framework} has no implementation of {operation.kind} here"
    return ""

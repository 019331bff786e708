"""Operations of any sizes: a module for each framework, with a class that is given the operation."""

from __future__ import annotations

from importlib.util import find_spec

from fairlap.models.operations.kinds import Recurrent
from fairlap.models.operations.operation import Operation


def why_not(operation: Operation, framework: str, implementation: str) -> str:
    """Why a framework cannot do it, by its own name and by that of the implementation it runs; empty where it can."""
    if find_spec(f"{__name__}.{implementation}_model") is None:
        return f"{framework} has no implementation of {operation.kind} here"
    if framework == "litert" and isinstance(operation, Recurrent):
        return "LiteRT's converter leaves the weights of Keras's recurrent layers as variables, which it cannot read"
    return ""

"""The answer of a call as arrays by name: what it returns, and the arguments that the reference writes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.models.sources.callables.arguments import is_tensor

Array = npt.NDArray[Any]

ANSWER = "answer"
CHANGED = "argument"
"""Before the name of an argument that the reference writes to, in the names of answers."""

_MOST_EXACT = 2**53  # of integers in float64
_HALF = 32  # bits


class Part(msgspec.Struct, frozen=True, tag=True):
    """One array of the answer. ``halves`` are those of integers that float64 cannot hold."""

    name: str
    halves: bool = False


class Parts(msgspec.Struct, frozen=True, tag=True):
    items: tuple[Answer, ...]


class NamedParts(msgspec.Struct, frozen=True, tag=True):
    items: dict[str, Answer]


class NoPart(msgspec.Struct, frozen=True, tag=True):
    """None, which is compared with nothing."""


Answer = Part | Parts | NamedParts | NoPart


def answer_like(result: Any, name: str = ANSWER) -> Answer:
    """Describe the answers that are like this one. Raises TypeError for what holds no numbers."""
    if result is None:
        return NoPart()
    if isinstance(result, Mapping):
        return NamedParts({str(key): answer_like(each, f"{name}.{key}") for key, each in result.items()})
    if isinstance(result, tuple) or (isinstance(result, list) and _numbers(result) is None):
        return Parts(tuple(answer_like(each, f"{name}[{number}]") for number, each in enumerate(result)))
    array = _numbers(result)
    if array is None:
        raise TypeError(f"{name} is of type {type(result).__name__}, not numbers")
    return Part(name, halves=_needs_halves(array))


def named_parts(answer: Answer, result: Any) -> dict[str, Array]:
    """By name; a part that the result lacks, or that holds no numbers, is left out."""
    match answer:
        case Part(name=name):
            array = _numbers(result)
            return {} if array is None else {name: compared(array, halves=answer.halves)}
        case Parts(items=items):
            given = list(result) if isinstance(result, list | tuple) else []
            pairs = list(zip(items, given, strict=False))
        case NamedParts(items=named):
            own = {str(key): each for key, each in result.items()} if isinstance(result, Mapping) else {}
            pairs = [(each, own[key]) for key, each in named.items() if key in own]
        case NoPart():
            return {}
    return {name: array for each, part in pairs for name, array in named_parts(each, part).items()}


def compared(array: Array, *, halves: bool = False) -> Array:
    """In a type that a file holds and float64 holds exactly."""
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if halves and array.dtype.kind in "iu":
        whole = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64)
        parts = [whole >> whole.dtype.type(_HALF), whole & whole.dtype.type(2**_HALF - 1)]
        return np.stack([each.astype(np.int64) for each in parts], axis=-1)
    if array.dtype.kind == "f":
        return array if array.dtype.itemsize in (2, 4, 8) else array.astype(np.float64)
    return array if array.dtype.kind == "b" else array.astype(np.int64)


def _needs_halves(array: Array) -> bool:
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or not array.size:
        return False
    return int(array.max()) > _MOST_EXACT or int(array.min()) < -_MOST_EXACT


def _numbers(value: Any) -> Array | None:
    """Read as an array; None where it holds anything but numbers."""
    try:
        if is_tensor(value):
            import torch

            bare = value.detach().cpu()
            array = (bare.float() if bare.dtype is torch.bfloat16 else bare).numpy()
        else:
            array = np.asarray(value)
        if array.dtype.name == "bfloat16":  # of ml_dtypes
            array = array.astype(np.float32)
    except (TypeError, ValueError, RuntimeError):
        return None
    return array if array.dtype.kind in "biufc" else None

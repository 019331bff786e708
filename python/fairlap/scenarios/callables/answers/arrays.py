"""Arguments and answers of callables as NumPy arrays, whatever library they come from."""

from __future__ import annotations

import array
import copy
import ctypes
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.spec import UNIT_ROUNDOFF_OF_TYPE
from fairlap.scenarios.callables.answers.right_answers.in_chunks import are_same_bytes
from fairlap.scenarios.reading import deferred_type

Array = npt.NDArray[Any]

SMALLEST_NORMAL = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022} | {
    "complex64": 2.0**-126,
    "complex128": 2.0**-1022,
}


_OWN_REFERENCES = 2  # a parameter, and what counts it


class NotComparable(Exception):
    """An answer that is no array, number or text, nor made of those."""


class Deferred(Exception):
    """An answer that is still to be computed."""


class NeverStarted(Deferred):
    """An answer that is a coroutine of which nothing has run."""


@dataclass(frozen=True)
class Leaf:
    """``values`` hold bfloat16 as float32; ``kind`` is the name of the type it has itself."""

    values: Array
    kind: str

    @property
    def is_inexact(self) -> bool:
        return self.kind in UNIT_ROUNDOFF_OF_TYPE


Leaves = dict[str, Leaf]


def leaves_of(value: Any, name: str = "the answer") -> Leaves:
    """Copy all arrays, numbers and texts out of a value, by where they stand in it."""
    return {where: Leaf(np.array(leaf.values), leaf.kind) for where, leaf in answer_views(value, name).items()}


def leaves_left(value: Any) -> Leaves:
    """As ``leaves_of``, but without a copy of an array that nothing else refers to."""
    is_alone = type(value) is np.ndarray and value.flags.owndata and sys.getrefcount(value) <= _OWN_REFERENCES
    return answer_views(value) if is_alone else leaves_of(value)


def answer_views(value: Any, name: str = "the answer") -> Leaves:
    """Find them as ``leaves_of`` does, in the memory where they are."""
    if kind := deferred_type(value):
        raise Deferred(f"{name} is a {kind}, which is still to be computed")
    return views_of(value, name)


def views_of(value: Any, name: str) -> Leaves:
    """As ``answer_views``, of arguments, which may be anything."""
    return dict(_leaves(value, name))


def _leaves(value: Any, name: str) -> list[tuple[str, Leaf]]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [each for key in value for each in _leaves(value[key], f"{name}[{key!r}]")]
    if isinstance(value, set | frozenset):
        return _leaves(_in_order(value, name), name)
    if isinstance(value, list | tuple):
        if (numbers := _numbers(value)) is not None:
            return [(name, numbers)]
        return [each for place, part in enumerate(value) for each in _leaves(part, f"{name}[{place}]")]
    return [(name, _leaf(value, name))]


def _in_order(value: set[Any] | frozenset[Any], name: str) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:
        raise NotComparable(f"{name} is a set of what has no order") from None


def _numbers(value: list[Any] | tuple[Any, ...]) -> Leaf | None:
    """Take a list of numbers of one type as one array."""
    kinds = {type(each) for each in value}
    if len(kinds) != 1 or not kinds <= {int, float, complex, bool}:
        return None
    found = np.asarray(value)
    return None if found.dtype == object else Leaf(found, str(found.dtype))


def _leaf(value: Any, name: str) -> Leaf:
    if isinstance(value, str | bytes):
        return Leaf(np.asarray(value), type(value).__name__)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return Leaf(np.asarray(str(value)), "int")
    found = _as_numpy(value)
    if found is None or found.dtype.kind not in "biufcUSmMV":
        kind = f"array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise NotComparable(f"{name} is of the type {kind}")
    kind = _name_of(found.dtype)
    if kind == "bfloat16":
        return Leaf(found.astype(np.float32), kind)
    if found.dtype.kind == "V":
        raise NotComparable(f"{name} is an array of {kind}")
    return Leaf(found, kind if isinstance(value, np.ndarray) else _kind_in_library(value) or kind)


@cache
def _name_of(dtype: np.dtype[Any]) -> str:
    """NumPy puts it together each time, which takes longer than to copy a thousand numbers."""
    return dtype.name


def _as_numpy(value: Any) -> Array | None:
    if isinstance(value, bool | int | float | complex | np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, memoryview | bytearray | array.array | ctypes.Array):
        return np.asarray(memoryview(value))
    library = type(value).__module__.partition(".")[0]
    try:
        if library == "torch" and _is_tensor(value):
            of_torch = sys.modules["torch"]
            on_host = value.detach().cpu()
            return np.asarray(on_host.float() if on_host.dtype is of_torch.bfloat16 else on_host)
        if library == "tensorflow":
            return np.asarray(value.numpy())
        if library in ("jax", "jaxlib"):
            return np.asarray(value)
        if library == "cupy":
            return np.asarray(value.get())
    except Exception:
        return None
    return None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, sys.modules["torch"].Tensor)


def _kind_in_library(value: Any) -> str:
    """Name the type that NumPy has no word for; empty where it has."""
    return "bfloat16" if str(getattr(value, "dtype", "")) == "torch.bfloat16" else ""


def mapped(value: Any, change: Callable[[Array], Array]) -> Any:
    """Copy a value with each of its arrays changed, which stay arrays of their library."""
    if isinstance(value, Mapping):
        return {key: mapped(value[key], change) for key in value}
    if type(value) in (list, tuple):
        return type(value)(mapped(each, change) for each in value)
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, float | np.floating):
        return type(value)(change(np.asarray(value, np.float64)).item())
    library = type(value).__module__.partition(".")[0]
    if library == "torch" and _is_tensor(value):
        return _mapped_tensor(value, change)
    if library == "tensorflow" and hasattr(value, "numpy"):
        return sys.modules["tensorflow"].constant(change(value.numpy()))
    if library in ("jax", "jaxlib"):
        return sys.modules["jax"].numpy.asarray(change(np.asarray(value)))
    return copied(value)


def _mapped_tensor(tensor: Any, change: Callable[[Array], Array]) -> Any:
    torch = sys.modules["torch"]
    given = tensor.detach().cpu()
    of_few_bits = given.dtype is torch.bfloat16
    found = torch.from_numpy(np.ascontiguousarray(change(np.asarray(given.float() if of_few_bits else given))))
    if of_few_bits and found.dtype is torch.float32:
        found = found.to(torch.bfloat16)
    return found.reshape(given.shape).to(tensor.device)


def copied(value: Any) -> Any:
    """Copy deeply, each array with the strides that it has."""
    if isinstance(value, np.ndarray):
        return in_same_layout(value)
    if isinstance(value, Mapping):
        return {key: copied(value[key]) for key in value}
    if type(value) in (list, tuple):
        return type(value)(copied(each) for each in value)
    if type(value).__module__.partition(".")[0] == "torch" and _is_tensor(value):
        return value.detach().clone()
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def in_same_layout(given: Array) -> Array:
    """Copy an array with its strides, gaps and direction."""
    if given.dtype.hasobject or given.flags.c_contiguous or given.size == 0:
        return np.array(given, order="C" if given.flags.c_contiguous else "K")
    reach = [stride * (size - 1) for stride, size in zip(given.strides, given.shape, strict=True)]
    before = -sum(each for each in reach if each < 0)
    after = sum(each for each in reach if each > 0) + given.itemsize
    memory = np.zeros(before + after, np.uint8)
    found: Array = np.ndarray(given.shape, given.dtype, memory, before, given.strides)
    found[...] = given
    return found


def are_identical(first: Leaf, second: Leaf) -> bool:
    """Compare bit by bit."""
    one, other = first.values, second.values
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.flags.c_contiguous or not other.flags.c_contiguous or not one.ndim:
        return one.tobytes() == other.tobytes()
    return are_same_bytes(one, other)


def are_equal(first: Leaves, second: Leaves) -> bool:
    return first.keys() == second.keys() and all(
        np.array_equal(first[name].values, second[name].values, equal_nan=first[name].is_inexact) for name in first
    )

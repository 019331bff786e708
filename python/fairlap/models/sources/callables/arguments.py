"""The arguments of a call: as arrays that a file can hold, and made again from them as they were drawn.

An argument is an array, a tensor of PyTorch, a number, a list of numbers, text, None, or a list, a tuple or a mapping
of these. It keeps its type and its layout in memory, since both decide how fast a callable is.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.models.array_files.safetensors import ALIGNMENT
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import SourceError
from fairlap.models.spec import Constant as Filled
from fairlap.models.spec import Dtype, Tensor

Array = npt.NDArray[Any]
LeafKind = Literal["array", "tensor", "scalar", "number", "numbers"]

_BFLOAT16 = "bfloat16"
_KINDS = "biufc"
_LARGEST_ITEM = {"f": 8, "c": 16}


class Leaf(msgspec.Struct, frozen=True, tag=True):
    """What one array of the file holds. ``scalar`` is NumPy's, ``number`` and ``numbers`` are Python's."""

    name: str
    kind: LeafKind
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] = ()  # in bytes; none where its elements follow each other in C order

    @property
    def is_float(self) -> bool:
        return self.dtype == _BFLOAT16 or np.dtype(self.dtype).kind in "fc"

    @property
    def is_mutable(self) -> bool:
        """Whether a call can write to it, and other numbers can take the place of its own."""
        return self.kind in ("array", "tensor", "numbers")

    def made(self, stored: Array) -> Any:
        """Make one more of it."""
        return _value(self, stored, None)


class Constant(msgspec.Struct, frozen=True, tag=True):
    value: str | None


class Series(msgspec.Struct, frozen=True, tag=True):
    kind: Literal["list", "tuple"]
    items: tuple[Node, ...]


class Named(msgspec.Struct, frozen=True, tag=True):
    items: dict[str, Node]


Node = Leaf | Constant | Series | Named


class Arguments(msgspec.Struct, frozen=True):
    """Their form, which is the same for all that are drawn."""

    positional: tuple[Node, ...] = ()
    keywords: dict[str, Node] = {}

    def leaves(self) -> dict[str, Leaf]:
        nodes = [*self.positional, *self.keywords.values()]
        return {leaf.name: leaf for node in nodes for leaf in _leaves(node)}

    def tensors(self) -> tuple[Tensor, ...]:
        """As they are stored."""
        return tuple(_stored_as(leaf) for leaf in self.leaves().values())

    def made(self, stored: Arrays, wide: Arrays | None = None) -> Made:
        """Make arguments of memory that is theirs alone; of ``wide`` numbers in float64 where those are given."""
        values = {
            name: _value(leaf, stored[name], None if wide is None else wide.get(name))
            for name, leaf in self.leaves().items()
        }
        return self.made_of(values)

    def made_of(self, values: dict[str, Any]) -> Made:
        """Put leaves that were made into their places."""
        return Made(
            tuple(_built(node, values) for node in self.positional),
            {name: _built(node, values) for name, node in self.keywords.items()},
            values,
        )


class Made(msgspec.Struct, frozen=True):
    """Arguments of one call, and their leaves by name."""

    positional: tuple[Any, ...]
    keywords: dict[str, Any]
    leaves: dict[str, Any]


def drawn_arguments(returned: Any, names: Sequence[str]) -> tuple[Arguments, dict[str, Array]]:
    """Take apart what was drawn: a mapping names arguments, a tuple has them in their order, else it is the only one.

    ``names`` are those of the reference's parameters. Raises SourceError for what no file can hold.
    """
    arrays: dict[str, Array] = {}
    if isinstance(returned, Mapping):
        return Arguments(
            keywords={str(name): _node(each, str(name), arrays) for name, each in returned.items()}
        ), arrays
    given = returned if isinstance(returned, tuple) else (returned,)
    called = [*names[: len(given)], *(f"argument {number + 1}" for number in range(len(names), len(given)))]
    return Arguments(tuple(_node(each, name, arrays) for name, each in zip(called, given, strict=True))), arrays


def numbers_of(leaf: Leaf, stored: Array) -> Array:
    """Read what it holds, in a type that NumPy computes in."""
    if leaf.dtype == _BFLOAT16:
        bits = np.ascontiguousarray(stored).view(np.uint16).reshape(leaf.shape)
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return _restored(leaf, stored)


def stored_value(leaf: Leaf, value: Any) -> Array:
    """Read a leaf that was made, as the file would hold it; an empty array where it no longer has its form."""
    if leaf.kind == "tensor":
        value = _array_of_tensor(value)
    array = np.asarray(value)
    if leaf.dtype != _BFLOAT16 and array.shape == leaf.shape and array.dtype != np.dtype(leaf.dtype):
        array = array.astype(leaf.dtype) if leaf.kind == "numbers" else array
    return _stored(array)


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(value, torch.Tensor)


def _leaves(node: Node) -> Iterator[Leaf]:
    match node:
        case Leaf():
            yield node
        case Series(items=items):
            for each in items:
                yield from _leaves(each)
        case Named(items=named):
            for each in named.values():
                yield from _leaves(each)


def _node(value: Any, name: str, arrays: dict[str, Array]) -> Node:
    if value is None or isinstance(value, str):
        return Constant(value)
    if isinstance(value, Mapping):
        return Named({str(key): _node(each, f"{name}.{key}", arrays) for key, each in value.items()})
    if type(value) in (list, tuple) and not _is_numbers(value):
        items = tuple(_node(each, f"{name}[{number}]", arrays) for number, each in enumerate(value))
        return Series("list" if isinstance(value, list) else "tuple", items)
    leaf, arrays[name] = _leaf(value, name)
    return leaf


def _is_numbers(value: Any) -> bool:
    kinds = {type(each) for each in value}
    return isinstance(value, list) and len(kinds) == 1 and kinds <= {bool, int, float, complex}


def _leaf(value: Any, name: str) -> tuple[Leaf, Array]:
    if is_tensor(value):
        return _leaf_of_tensor(value, name)
    kind: LeafKind
    if isinstance(value, list):
        kind = "numbers"
    elif type(value) in (bool, int, float, complex):
        kind = "number"
    elif isinstance(value, np.generic):
        kind = "scalar"
    elif type(value) in (np.ndarray, np.memmap):
        kind = "array"
    else:
        raise _refused(name, f"{type(value).__module__}.{type(value).__qualname__}")
    array = np.asarray(value)
    dtype = array.dtype
    if dtype.kind not in _KINDS or not dtype.isnative or dtype.itemsize > _LARGEST_ITEM.get(dtype.kind, 8):
        raise _refused(name, f"of {dtype}")
    plain = array.flags.c_contiguous or not array.size
    return Leaf(name, kind, str(dtype), array.shape, () if plain else array.strides), _stored(array)


def _leaf_of_tensor(tensor: Any, name: str) -> tuple[Leaf, Array]:
    if str(tensor.layout) != "torch.strided" or tensor.device.type != "cpu":
        raise _refused(name, f"a tensor on {tensor.device} in the layout {tensor.layout}")
    array, dtype = _array_of_tensor(tensor), str(tensor.dtype).removeprefix("torch.")
    if dtype != _BFLOAT16 and array.dtype.kind not in _KINDS:
        raise _refused(name, f"a tensor of {dtype}")
    plain = tensor.is_contiguous() or not array.size
    dtype = dtype if dtype == _BFLOAT16 else str(array.dtype)
    return Leaf(name, "tensor", dtype, array.shape, () if plain else array.strides), _stored(array)


def _array_of_tensor(tensor: Any) -> Array:
    """Share its memory; of bfloat16, which NumPy lacks, the bits."""
    import torch

    bare = tensor.detach()
    found: Array = (bare.view(torch.int16) if bare.dtype is torch.bfloat16 else bare).numpy()
    return found.view(np.uint16) if bare.dtype is torch.bfloat16 else found


def _refused(name: str, what: str) -> SourceError:
    return SourceError(
        f"{name} is {what}; draw NumPy arrays, PyTorch tensors, numbers, text, and lists and mappings of these, and "
        "make anything else of them in the callable",
        code="E_SOURCE_INPUTS",
    )


def _stored_as(leaf: Leaf) -> Tensor:
    if leaf.dtype in get_args(Dtype):
        return Tensor(leaf.name, leaf.shape, Filled(0.0), leaf.dtype)  # type: ignore[arg-type]
    size = 2 if leaf.dtype == _BFLOAT16 else np.dtype(leaf.dtype).itemsize
    return Tensor(leaf.name, (*leaf.shape, size), Filled(0.0), "uint8")


def _stored(array: Array) -> Array:
    """In C order; a type that the format lacks as its bytes, along a further axis."""
    whole = np.array(array, order="C", copy=True)
    if str(whole.dtype) in get_args(Dtype):
        return whole
    return whole.reshape(-1).view(np.uint8).reshape(*whole.shape, whole.dtype.itemsize)


def _restored(leaf: Leaf, stored: Array) -> Array:
    """Undo ``_stored``; of bfloat16 return the bits. What is in a wider type already is returned as it is."""
    dtype = np.dtype(np.uint16 if leaf.dtype == _BFLOAT16 else leaf.dtype)
    if stored.shape == leaf.shape:
        return stored
    return np.ascontiguousarray(stored).reshape(-1).view(dtype).reshape(leaf.shape)


def _value(leaf: Leaf, stored: Array, wide: Array | None) -> Any:
    array = _restored(leaf, stored) if wide is None else wide
    if leaf.kind in ("number", "numbers"):
        return array.tolist()
    if leaf.kind == "scalar":
        return array[()]
    made = _laid_out(array, leaf.strides if wide is None else ())
    if leaf.kind == "array":
        return made
    import torch

    if leaf.dtype == _BFLOAT16 and wide is None:
        return torch.from_numpy(made.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(made)


def _laid_out(array: Array, strides: tuple[int, ...]) -> Array:
    """Copy to a 64-byte boundary, where its first element then is, in the layout that was drawn."""
    strides = strides or _strides_in_order(array)
    steps = [(size - 1) * stride for size, stride in zip(array.shape, strides, strict=True)] if array.size else []
    before = -sum(min(step, 0) for step in steps)
    extent = before + sum(max(step, 0) for step in steps) + array.itemsize if array.size else 0
    memory = np.zeros(extent + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    made: Array = np.ndarray(array.shape, array.dtype, memory.data, start + before, strides)
    made[...] = array
    return made


def _strides_in_order(array: Array) -> tuple[int, ...]:
    sizes = [array.itemsize, *(max(size, 1) for size in reversed(array.shape))]
    return tuple(math.prod(sizes[:place]) for place in range(array.ndim, 0, -1))


def _built(node: Node, values: Mapping[str, Any]) -> Any:
    match node:
        case Leaf(name=name):
            return values[name]
        case Constant(value=value):
            return value
        case Series(kind=kind, items=items):
            made: Callable[[Any], Any] = list if kind == "list" else tuple
            return made(_built(each, values) for each in items)
        case Named(items=named):
            return {name: _built(each, values) for name, each in named.items()}

"""Where arguments and answers are in shared memory: types, shapes and offsets, which never change during a race.

Both sides use it. The parent decides every layout; nothing that a contestant writes can change one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import InvalidRequest, shown

_ALIGNED_BYTES = 64
_PYTHON_NUMBERS: Mapping[type, str] = {bool: "|b1", int: "<i8", float: "<f8", complex: "<c16"}
PLAIN = (str, bytes, type(None))
BFLOAT16 = "bfloat16"
_KINDS = "biufc"
Tree = Any
"""Tuples, lists and mappings of leaves; a leaf is an array, a tensor or a number, and the place of one is an int."""


class Leaf(msgspec.Struct, frozen=True):
    """One array, tensor or number. ``library`` is "numpy", "torch" or "python"."""

    library: str
    dtype: str  # a NumPy type, or "bfloat16"
    shape: tuple[int, ...]
    offset: int = 0

    @property
    def stored_as(self) -> np.dtype[Any]:
        return np.dtype("<u2" if self.dtype == BFLOAT16 else self.dtype)

    @property
    def nbytes(self) -> int:
        return self.stored_as.itemsize * int(np.prod(self.shape, dtype=np.int64))


class Layout(msgspec.Struct, frozen=True):
    """The leaves of one call's arguments or answers in a slot, and how they are nested.

    ``nesting`` is a JSON value: ``["tuple", ...]``, ``["list", ...]``, ``["dict", {...}]``, ``["leaf", number]`` or
    ``["plain", value]``.
    """

    leaves: tuple[Leaf, ...]
    nesting: Any
    slot_bytes: int

    def views(self, slots: np.ndarray[Any, Any], slot: int) -> list[np.ndarray[Any, Any]]:
        """Return the arrays of a slot as they are stored."""
        first = slot * self.slot_bytes
        return [
            slots[first + leaf.offset : first + leaf.offset + leaf.nbytes].view(leaf.stored_as).reshape(leaf.shape)
            for leaf in self.leaves
        ]


def layout_of(tree: Tree, what: str) -> Layout:
    """Lay out the arrays, tensors and numbers of a tree; raise InvalidRequest for anything else in it."""
    leaves: list[Leaf] = []
    offset = 0

    def leaf(value: object) -> object:
        nonlocal offset
        if type(value) in PLAIN:
            return ["plain", value.decode("latin-1") if isinstance(value, bytes) else value]
        found = _leaf_of(value, what)
        leaves.append(msgspec.structs.replace(found, offset=offset))
        offset += -(-found.nbytes // _ALIGNED_BYTES) * _ALIGNED_BYTES
        return ["leaf", len(leaves) - 1]

    nesting = nested(tree, leaf)
    return Layout(tuple(leaves), nesting, max(offset, _ALIGNED_BYTES))


def nested(tree: Tree, leaf: Callable[[object], object]) -> Any:
    if isinstance(tree, tuple | list):
        return ["tuple" if isinstance(tree, tuple) else "list", *(nested(each, leaf) for each in tree)]
    if isinstance(tree, Mapping):
        return ["dict", {str(name): nested(each, leaf) for name, each in _by_name(tree)}]
    return leaf(tree)


def built(nesting: Any, leaf: Callable[[int], object]) -> Any:
    """Build the tree of a nesting, with what ``leaf`` makes of each leaf's number."""
    kind, *rest = nesting
    if kind == "leaf":
        return leaf(rest[0])
    if kind == "plain":
        return rest[0]
    if kind == "dict":
        return {name: built(each, leaf) for name, each in rest[0].items()}
    found = [built(each, leaf) for each in rest]
    return tuple(found) if kind == "tuple" else found


def leaves_of(tree: Tree) -> list[Any]:
    """Return the arrays, tensors and numbers of a tree in the order of its layout."""
    if isinstance(tree, tuple | list):
        return [found for each in tree for found in leaves_of(each)]
    if isinstance(tree, Mapping):
        return [found for _, each in _by_name(tree) for found in leaves_of(each)]
    return [] if type(tree) in PLAIN else [tree]


def stored(value: Any) -> np.ndarray[Any, Any]:
    """Return an array, tensor or number as NumPy stores it, bfloat16 as its bits."""
    if _library_of(value) == "torch":
        import torch

        tensor = value.detach().contiguous().cpu()
        found: np.ndarray[Any, Any] = (
            tensor.view(torch.uint16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
        )
        return found
    return np.asarray(value)


def widened(bits: np.ndarray[Any, Any], leaf: Leaf) -> np.ndarray[Any, Any]:
    """Return stored values as float64, complex128, or the integers that they are."""
    if leaf.dtype == BFLOAT16:
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if bits.dtype.kind == "f":
        return bits.astype(np.float64)
    return bits.astype(np.complex128) if bits.dtype.kind == "c" else bits.copy()


def _by_name(tree: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return sorted(tree.items(), key=lambda each: str(each[0]))


def _library_of(value: object) -> str:
    module = type(value).__module__.partition(".")[0]
    if module == "torch" and hasattr(value, "detach"):
        return "torch"
    return "python" if type(value) in _PYTHON_NUMBERS else "numpy"


def _leaf_of(value: object, what: str) -> Leaf:
    library = _library_of(value)
    if library == "python":
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidRequest(f"{what} has an integer beyond 64 bits: {shown(value)}")
        return Leaf(library, _PYTHON_NUMBERS[type(value)], ())
    if library == "torch":
        is_bfloat16 = str(getattr(value, "dtype", "")) == "torch.bfloat16"
        bits = stored(value)
        return Leaf(library, BFLOAT16 if is_bfloat16 else bits.dtype.str, bits.shape)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _KINDS and value.dtype.itemsize <= 16:
        return Leaf(library, value.dtype.newbyteorder("<").str, value.shape)
    raise InvalidRequest(f"{what} has {shown(value)}, which is not an array, a tensor or a number")

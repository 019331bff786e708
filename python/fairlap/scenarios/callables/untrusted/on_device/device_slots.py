"""The calls of one sample in the contestant's process, on a device: each has ended there before the next begins.

As everything in that process, it can be changed by the callable. The referee does not rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from fairlap.engine import _native
from fairlap.scenarios.callables.untrusted.layout import BFLOAT16, Layout, Leaf, built, leaves_of, nested
from fairlap.scenarios.callables.untrusted.slots import shape_of_nesting


class DeviceOrders(msgspec.Struct, frozen=True):
    """What a contestant needs to open its memory of a device."""

    number: int
    inputs: bytes
    answers: bytes


class DeviceArray:
    """An argument on the device, for whatever library takes the CUDA array interface."""

    def __init__(self, address: int, leaf: Leaf) -> None:
        self.shape = leaf.shape
        self.dtype = leaf.stored_as
        self.__cuda_array_interface__ = {
            "shape": leaf.shape,
            "typestr": leaf.stored_as.str,
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


class DeviceSlots:
    """Every slot has the arguments of one call, and room for its answer."""

    def __init__(self, arguments: Any, answers: Any, orders: Any, count: int) -> None:
        given, self._layout = (msgspec.convert(each, Layout) for each in (arguments, answers))
        self._orders = msgspec.convert(orders, DeviceOrders)
        self._copies = _native.DeviceCopies(self._orders.number)
        self._wait = _native.DeviceWait(self._orders.number)
        self._inputs = _native.OpenedPages(self._copies, self._orders.inputs)
        self._answered = _native.OpenedPages(self._copies, self._orders.answers)
        self._nesting = shape_of_nesting(self._layout.nesting)
        self._arguments = [self._called_with(given, self._inputs.address + n * given.slot_bytes) for n in range(count)]
        self._kept = [
            self._made(self._layout, self._answered.address + n * self._layout.slot_bytes) for n in range(count)
        ]

    def run(self, call: Callable[..., Any], first: int, count: int) -> str:
        """Call once with each slot's arguments; return how the form of an answer is wrong, or an empty text."""
        for slot in range(first, first + count):
            arguments, keywords = self._arguments[slot]
            answer = call(*arguments, **keywords)
            self._wait()
            if why := self._keep(answer, self._kept[slot]):
                return why
        return ""

    def empty_call(self) -> Callable[..., Any]:
        """Return an answer of the right form and do nothing, which is what a sample costs by itself."""
        self._zeros = _native.DevicePages(self._copies, self._layout.slot_bytes)
        self._copies.fill(self._zeros.address, 0, self._layout.slot_bytes // 4)
        made = self._made(self._layout, self._zeros.address)
        answer = built(self._layout.nesting, lambda place: made[place])
        return lambda *_, **__: answer

    def _keep(self, answer: Any, kept: list[Any]) -> str:
        if shape_of_nesting(nested(answer, lambda _: ["leaf", 0])) != self._nesting:
            return f"it returned a {type(answer).__name__} of another form than the reference"
        for value, into, leaf in zip(leaves_of(answer), kept, self._layout.leaves, strict=True):
            if why := self._copied(value, into, leaf):
                return why
        return ""

    def _copied(self, value: Any, into: Any, leaf: Leaf) -> str:
        """Copy an answer, unless it is no array on a device of the right shape and type."""
        if leaf.library == "torch":
            import torch

            if type(value) is not torch.Tensor:
                return f"it returned a {type(value).__name__}, not a tensor"
            if value.shape != into.shape or value.is_floating_point() != into.is_floating_point():
                return f"it returned {value.dtype} of shape {list(value.shape)}, not {into.dtype} of {list(into.shape)}"
            into.copy_(value.detach())
            self._wait()
            return ""
        found = getattr(value, "__cuda_array_interface__", None)
        if not isinstance(found, Mapping):
            return f"it returned a {type(value).__name__}, not an array on the device"
        dtype, shape = np.dtype(found["typestr"]), tuple(found["shape"])
        if shape != leaf.shape or dtype != leaf.stored_as:
            return f"it returned {dtype} of shape {list(shape)}, not {leaf.stored_as} of {list(leaf.shape)}"
        if not _is_contiguous(found.get("strides"), leaf):
            return "it returned an array with gaps or in another order; make a contiguous copy of it"
        if leaf.nbytes:
            self._copies.within(into.__cuda_array_interface__["data"][0], found["data"][0], leaf.nbytes)
        return ""

    def _called_with(self, layout: Layout, address: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        made = self._made(layout, address)
        tree = built(layout.nesting, lambda place: made[place])
        if isinstance(tree, Mapping):
            return (), dict(tree)
        return (tree if isinstance(tree, tuple) else (tree,)), {}

    def _made(self, layout: Layout, address: int) -> list[Any]:
        """Return the arrays and tensors of a slot at an address."""
        return [self._array(DeviceArray(address + leaf.offset, leaf), leaf) for leaf in layout.leaves]

    def _array(self, array: DeviceArray, leaf: Leaf) -> Any:
        if leaf.library != "torch":
            return array
        import torch

        array.__cuda_array_interface__["typestr"] = "<i2" if leaf.dtype == BFLOAT16 else leaf.stored_as.str
        tensor = torch.as_tensor(array, device=f"cuda:{self._orders.number}")
        return tensor.view(torch.bfloat16) if leaf.dtype == BFLOAT16 else tensor


def _is_contiguous(strides: Any, leaf: Leaf) -> bool:
    if strides is None or leaf.nbytes == 0:
        return True
    expected = leaf.stored_as.itemsize
    for length, stride in zip(reversed(leaf.shape), reversed(tuple(strides)), strict=True):
        if length > 1 and stride != expected:
            return False
        expected *= length
    return True

"""Weights of a PyTorch module that are in float64 only while an operator uses them.

A module in float64 takes three times the memory of one in float32, together with it. Here a parameter is a tensor of
float64 without numbers: an operator that takes it gets them from an array that is widened at that moment.

PyTorch is imported at the top: only functions of a process that runs it import this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from fairlap.models.arrays import Arrays

_KEPT_BYTES = 2**26  # of weights in float64, between the operators that use them
_FEW = 64  # references to storages
_AGAIN = (torch.ops.aten.detach.default, torch.ops.aten.alias.default)


class WeightWritten(Exception):
    """The module writes into a weight, which would last for one operator only."""


class WideWeights:
    """In float64, by name. The last ones that were used are kept, as long as they are small together."""

    def __init__(self) -> None:
        self._given: Arrays = {}
        self._kept: dict[str, torch.Tensor] = {}  # the one that was not used for longest first
        self._kept_bytes = 0
        self._made: set[StorageWeakRef] = set()

    @contextmanager
    def of(self, given: Arrays) -> Iterator[None]:
        """Take their numbers from these arrays for so long."""
        self._given = given
        try:
            yield
        finally:
            self._given, self._kept, self._kept_bytes, self._made = {}, {}, 0, set()

    def tensor(self, name: str, strides: Sequence[int]) -> torch.Tensor:
        found = self._kept.pop(name, None)
        if found is None:
            found = _strided(torch.from_numpy(np.require(self._given[name], np.float64, ["C", "W"])), strides)
            if len(self._made) > _FEW + 2 * len(self._kept):
                self._made = {each for each in self._made if not each.expired()}
            self._made.add(StorageWeakRef(found.untyped_storage()))
        else:
            self._kept_bytes -= found.nbytes
        self._kept[name] = found
        self._kept_bytes += found.nbytes
        while self._kept_bytes > _KEPT_BYTES:
            self._kept_bytes -= self._kept.pop(next(iter(self._kept))).nbytes
        return found

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether this is one of them, or a view of one."""
        return isinstance(tensor, WideWeight) or StorageWeakRef(tensor.untyped_storage()) in self._made


def _strided(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Lay it out as the module has it, since operators choose their algorithm by that."""
    if tensor.stride() == tuple(strides):
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)


class WideWeight(torch.Tensor):
    """One of these as a parameter: it has all of a tensor of float64 but the numbers."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, weights: WideWeights, name: str, like: torch.Tensor) -> WideWeight:
        found: WideWeight = torch.Tensor._make_wrapper_subclass(
            cls, like.shape, strides=like.stride(), dtype=torch.float64, device=like.device
        )
        return found

    def __init__(self, weights: WideWeights, name: str, like: torch.Tensor) -> None:
        self._weights, self._weight_name = weights, name

    def whole(self) -> torch.Tensor:
        return self._weights.tensor(self._weight_name, self.stride())

    @property
    def data(self) -> torch.Tensor:
        return self.detach()

    @data.setter
    def data(self, other: torch.Tensor) -> None:
        """Take the same one, which ``Module.double`` sets."""
        if other is not self:
            raise WeightWritten(self._weight_name)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _AGAIN:
            return cls(args[0]._weights, args[0]._weight_name, args[0])
        args, kwargs = tree_map_only(cls, cls.whole, (args, kwargs or {}))
        return func(*args, **kwargs)


def as_parameter(weights: WideWeights, name: str, like: torch.nn.Parameter) -> torch.nn.Parameter:
    return torch.nn.Parameter(WideWeight(weights, name, like), requires_grad=like.requires_grad)


class RefusesWrites(TorchDispatchMode):
    """Raise WeightWritten instead of an operator that writes into a weight."""

    def __init__(self, is_weight: Callable[[torch.Tensor], bool]) -> None:
        super().__init__()
        self._is_weight = is_weight

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable and any(map(self._is_weight, _written(func, args, kwargs))):
            raise WeightWritten(str(func))
        return func(*args, **kwargs)


def _written(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterable[torch.Tensor]:
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            for each in value if isinstance(value, list | tuple) else [value]:
                if isinstance(each, torch.Tensor):
                    yield each


def storages_of(tensors: Iterable[torch.Tensor]) -> set[StorageWeakRef]:
    return {StorageWeakRef(each.untyped_storage()) for each in tensors}


def lies_in(storages: set[StorageWeakRef]) -> Callable[[torch.Tensor], bool]:
    """Make a test for tensors that use one of these storages."""
    return lambda tensor: StorageWeakRef(tensor.untyped_storage()) in storages

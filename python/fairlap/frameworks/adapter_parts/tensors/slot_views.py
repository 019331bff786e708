"""NumPy views of a feeder's slots, created once per slot, since a feeder reuses few of them.

A view does not keep its batch alive: the caller holds the batch until the work on it is done.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairlap.models.modes import MODES
from fairlap.models.spec import Tensor
from fairlap.models.workload import Workload


class SlotViews:
    """``made_of`` turns a view into what the framework takes, if it does not take the view itself."""

    def __init__(self, work: Workload, made_of: Callable[[Any], Any] = lambda view: view) -> None:
        labels = work.spec.label_tensor() if MODES[work.mode].batches_have_labels else None
        fed = (*work.spec.inputs, labels) if labels else work.spec.inputs
        self._tensors = {tensor.name: tensor for tensor in fed}
        self._batch = work.batch
        self._made_of = made_of
        self._made: dict[tuple[str, int], Any] = {}

    def at(self, addresses: Mapping[str, int]) -> dict[str, Any]:
        """Return views of these addresses, by the names of the inputs."""
        made = self._made
        return {each[0]: made[each] if each in made else self._over(*each) for each in addresses.items()}

    def _over(self, name: str, address: int) -> Any:
        tensor: Tensor = self._tensors[name]
        shape, dtype = tensor.sized(self._batch), np.dtype(tensor.dtype)
        memory: Any = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
        view = self._made_of(np.frombuffer(memory, dtype).reshape(shape))
        self._made[name, address] = view
        return view

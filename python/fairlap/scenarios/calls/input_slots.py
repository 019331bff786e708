"""Memory for the inputs of a contestant that those of every call are copied to, as from a feeder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant
from fairlap.models.array_files.safetensors import ALIGNMENT
from fairlap.models.spec import Tensor


class _Slot:
    """What a framework takes for a batch of a feeder."""

    def __init__(self, tensor: Tensor, batch: int) -> None:
        shape, dtype = tensor.sized(batch), np.dtype(tensor.dtype)
        memory = np.zeros(int(np.prod(shape)) * dtype.itemsize + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        self.array = memory[start : len(memory) - ALIGNMENT + start].view(dtype).reshape(shape)
        self.pointer = self.array.ctypes.data
        self.__dlpack__ = self.array.__dlpack__


class InputSlots:
    """Of one contestant, whose calls come one after the other."""

    def __init__(self, contestant: Contestant, tensors: Sequence[Tensor], batch: int) -> None:
        self._contestant = contestant
        self._slots = {tensor.name: _Slot(tensor, batch) for tensor in tensors}
        self.arrays = {name: slot.array for name, slot in self._slots.items()}  # to be filled before a call

    def result(self) -> Any:
        """Call it on what the slots have; without another copy where the framework can take their memory."""
        fed = self._contestant.fed
        if fed is None:
            return self._contestant.bind(self.arrays)()
        hand_over: Callable[[Any], Any] = fed.hand_over
        return fed.run({name: hand_over(slot) for name, slot in self._slots.items()})

"""Inputs that no contestant has had before: each call of each round gets its own, the same for all contestants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.errors import InvalidRequest, described
from fairlap.scenarios.callables.untrusted.layout import Layout, layout_of, leaves_of, stored
from fairlap.scenarios.callables.untrusted.memory import PAGE_BYTES, SharedMemory
from fairlap.scenarios.callables.untrusted.on_device.device_exchange import PrivateMemory

_WHAT = "what --inputs returned"


class Draws:
    """``function(rng, **sizes)`` returns a tuple, a mapping or one value."""

    def __init__(self, function: Callable[..., Any], sizes: Mapping[str, int], seed: int) -> None:
        self._function = function
        self._sizes = dict(sizes)
        self._rng = np.random.default_rng(seed)

    def one(self) -> Any:
        try:
            return self._function(self._rng, **self._sizes)
        except Exception as error:
            raise InvalidRequest(f"--inputs raised {described(error)}") from error


class DrawnSlots:
    """The inputs of a round, which are the referee's own, and the memory that contestants read those of a sample from.

    On a device both are there, and ``memory`` has its first page only.
    """

    def __init__(self, draws: Draws, layout: Layout, slots: int, on_device: PrivateMemory | None) -> None:
        self._draws = draws
        self._layout = layout
        self._on_device = on_device
        nbytes = slots * layout.slot_bytes
        of_host = 0 if on_device else nbytes
        self.memory = SharedMemory("fairlap-inputs", PAGE_BYTES + of_host, read_only_elsewhere=True)
        self._bytes = np.zeros(nbytes, np.uint8)
        self._shown = slice(0)
        self._views = [layout.views(self._bytes, slot) for slot in range(slots)]

    def fill(self, count: int) -> Sequence[Any]:
        """Draw inputs into the first slots, where no contestant can see them, and return them as they were drawn."""
        drawn = [self._draws.one() for _ in range(count)]
        for arguments, views in zip(drawn, self._views, strict=False):
            found = layout_of(arguments, _WHAT)
            if found != self._layout:
                raise InvalidRequest(f"{_WHAT} changed its types, shapes or texts; they must be the same for all calls")
            for value, view in zip(leaves_of(arguments), views, strict=True):
                view[...] = stored(value)
        if self._on_device:
            filled = self._bytes[: count * self._layout.slot_bytes]
            self._on_device.device.copies.upload(self._on_device.inputs.address, filled.data)
        return drawn

    def show(self, first: int, count: int) -> None:
        """Put the inputs of these slots, and no others, where contestants read them; all of them are stopped.

        One that saw those of its sample during the calls before it could answer them when no clock counts.
        """
        bytes_of_slot = self._layout.slot_bytes
        shared, shown = self.memory.bytes[PAGE_BYTES:], slice(first * bytes_of_slot, (first + count) * bytes_of_slot)
        if shown != self._shown:
            shared[self._shown] = 0
            self._shown = shown
        shared[shown] = self._bytes[shown]

"""The device as the referee has it: its own context and memory, which no contestant can reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.engine import _native
from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.frameworks.contract import device_number
from fairlap.machine.hardware.cuda_devices import require_driver
from fairlap.scenarios.callables.untrusted.layout import Layout

_LOOKED_FOR_NS = 5_000_000  # other processes take turns of a millisecond or two
_LONGEST_PAUSE_NS = 200_000


class RefereeDevice:
    """Raises NotAvailable where contestants cannot be judged on it."""

    def __init__(self, name: str) -> None:
        require_driver(name)
        self.name = name
        self.number = device_number(name)
        try:
            self.copies = _native.DeviceCopies(self.number)
            self.copies.require_sharing()
        except (_native.BadStream, _native.CudaError, _native.CudaUnavailable) as error:
            raise NotAvailable(f"cannot judge callables on {name}: {error}", code="E_DEVICE_SHARING") from None
        if not self.is_idle():
            what = f"another process computes on {name}; callables are judged on a device that has nothing else to do"
            raise NotAvailable(what, code="E_DEVICE_SHARING")

    def pages(self, nbytes: int) -> _native.DevicePages:
        """Return memory of this process, which none can open until it is exported."""
        return _native.DevicePages(self.copies, nbytes)

    def is_idle(self) -> bool:
        """Whether no other process computes on it. All contestants are stopped, but not what they enqueued."""
        return self.copies.longest_pause_ns(_LOOKED_FOR_NS) < _LONGEST_PAUSE_NS

    def downloaded(self, address: int, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        found = np.empty(nbytes, np.uint8)
        self.copies.download(found.data, address)
        return found


def require_arrays(layout: Layout, what: str) -> None:
    """Refuse numbers of Python, which are not on a device."""
    if any(leaf.library == "python" for leaf in layout.leaves):
        raise InvalidRequest(f"{what} has a number; on a device, give arrays or tensors, of one element where need be")

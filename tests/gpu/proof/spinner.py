"""Kernels of known length, launched through the driver on any stream. They tell how long they really ran."""

from __future__ import annotations

import ctypes
from typing import Any

from fairlap.engine import _native

from .driver_calls import DriverCalls

_KEPT = 65_536  # launches whose stamps are kept; older ones are written over
_STAMPS_BYTES = 16


class Spinner:
    """Spins on one thread of the device. A context must be current on this thread.

    Stamps go to device memory: a store to the host would make the kernel about a microsecond longer at its end.
    """

    def __init__(self) -> None:
        self._driver = DriverCalls()
        self._launches = 0
        self._module = ctypes.c_void_p()
        self._check("cuModuleLoadData", ctypes.byref(self._module), _native.cuda_device_code().encode())
        self._by_ns = self._function("fairlap_spin_ns")
        self._by_cycles = self._function("fairlap_spin_cycles")
        self._empty = self._function("fairlap_empty")
        self._memory = ctypes.c_uint64()
        self._check("cuMemAlloc_v2", ctypes.byref(self._memory), ctypes.c_size_t(_KEPT * _STAMPS_BYTES))

    def spin_ns(self, stream: int, length_ns: int) -> None:
        """Spins for a time of the device's %globaltimer, and keeps when it began and ended."""
        place = self._launches % _KEPT
        self._launches += 1
        self._launch(self._by_ns, stream, length_ns, self._memory.value + place * _STAMPS_BYTES)

    def spin_cycles(self, stream: int, cycles: int) -> None:
        self._launch(self._by_cycles, stream, cycles, 0)

    def empty(self, stream: int) -> None:
        self._launch(self._empty, stream)

    def lengths_ns(self) -> list[int]:
        """What each spin_ns() since the last call really took by the device's own timer. They must be done."""
        count = min(self._launches, _KEPT)
        stamps = (ctypes.c_uint64 * (2 * max(1, count)))()
        self._check("cuMemcpyDtoH_v2", stamps, self._memory, ctypes.c_size_t(count * _STAMPS_BYTES))
        self._launches = 0
        return [int(stamps[2 * place + 1] - stamps[2 * place]) for place in range(count)]

    def close(self) -> None:
        self._check("cuMemFree_v2", self._memory)
        self._check("cuModuleUnload", self._module)

    def _function(self, name: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self._check("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
        return function

    def _launch(self, function: ctypes.c_void_p, stream: int, *numbers: int) -> None:
        values = [ctypes.c_uint64(number) for number in numbers]
        pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
        ones = [ctypes.c_uint(1)] * 6
        self._check("cuLaunchKernel", function, *ones, ctypes.c_uint(0), ctypes.c_void_p(stream), pointers, None)

    def _check(self, function: str, *arguments: Any) -> None:
        self._driver.call(function, *arguments)

"""Kernels of known length, launched through the driver on any stream. They tell how long they really ran."""

from __future__ import annotations

import ctypes
from typing import Any

from fairlap.engine import _native

_STAMPS = 2


class Spinner:
    """Spins on one thread of the device. A context must be current on this thread."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._module = ctypes.c_void_p()
        self._check("cuModuleLoadData", ctypes.byref(self._module), _native.cuda_device_code().encode())
        self._by_ns = self._function("fairlap_spin_ns")
        self._by_cycles = self._function("fairlap_spin_cycles")
        self._empty = self._function("fairlap_empty")
        self._memory = ctypes.c_void_p()
        self._check("cuMemHostAlloc", ctypes.byref(self._memory), ctypes.c_size_t(_STAMPS * 8), ctypes.c_uint(3))
        self._on_device = ctypes.c_uint64()
        self._check("cuMemHostGetDevicePointer_v2", ctypes.byref(self._on_device), self._memory, ctypes.c_uint(0))
        self._stamps = (ctypes.c_uint64 * _STAMPS).from_address(self._memory.value or 0)

    def spin_ns(self, stream: int, length_ns: int) -> None:
        """Spins for a time of the device's %globaltimer, and keeps when it began and ended."""
        self._launch(self._by_ns, stream, length_ns, self._on_device.value)

    def spin_cycles(self, stream: int, cycles: int) -> None:
        self._launch(self._by_cycles, stream, cycles, 0)

    def empty(self, stream: int) -> None:
        self._launch(self._empty, stream)

    def last_spin_ns(self) -> int:
        """What the last spin_ns() really took by the device's own timer, once it is done."""
        return int(self._stamps[1] - self._stamps[0])

    def close(self) -> None:
        self._check("cuMemFreeHost", self._memory)
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
        code = getattr(self._cuda, function)(*arguments)
        assert code == 0, f"{function} gave {code}"

"""The few calls of the driver that the proof makes itself: a second opinion must not be the engine's."""

from __future__ import annotations

import ctypes
import os
from typing import Any


class DriverCalls:
    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ.get("FAIRLAP_LIBCUDA") or "libcuda.so.1")

    def call(self, function: str, *arguments: Any) -> None:
        code = getattr(self._library, function)(*arguments)
        if code != 0:
            raise RuntimeError(f"{function} gave CUDA error {code}")


class PrimaryContext:
    """The context that frameworks share, made current on this thread; for measuring without any framework."""

    def __init__(self, device: int = 0) -> None:
        self._driver = DriverCalls()
        self._device = ctypes.c_int()
        context = ctypes.c_void_p()
        self._driver.call("cuInit", ctypes.c_uint(0))
        self._driver.call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(device))
        self._driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._driver.call("cuCtxSetCurrent", context)
        self._streams: list[int] = []

    def new_stream(self) -> int:
        """One that does not wait for the default stream."""
        stream = ctypes.c_void_p()
        self._driver.call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(1))
        self._streams.append(stream.value or 0)
        return self._streams[-1]

    def synchronize(self) -> None:
        self._driver.call("cuCtxSynchronize")

    def close(self) -> None:
        for stream in self._streams:
            self._driver.call("cuStreamDestroy_v2", ctypes.c_void_p(stream))
        self._driver.call("cuCtxSetCurrent", ctypes.c_void_p(0))
        self._driver.call("cuDevicePrimaryCtxRelease_v2", self._device)

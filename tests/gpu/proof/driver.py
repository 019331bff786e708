"""Driver calls, kernels of known length and copies, made without the engine as a second opinion on it."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from fairlap.engine import _native

_KEPT = 65_536  # launches whose stamps are kept; older ones are written over
_STAMPS_BYTES = 16
_RATE_NS = 10_000_000  # two steps of a microsecond are 0.02 % of it
MIB = 1 << 20
_BYTES_OF_A_ROUND = 1 << 30
_MOST_COPIES = 256
_ROUNDS = 5


class DriverCalls:
    def __init__(self) -> None:
        self.path = os.environ.get("FAIRLAP_LIBCUDA") or "libcuda.so.1"
        self._library = ctypes.CDLL(self.path)

    def has(self, function: str) -> bool:
        return hasattr(self._library, function)

    def call(self, function: str, *arguments: Any) -> None:
        code = getattr(self._library, function)(*arguments)
        if code != 0:
            raise RuntimeError(f"{function} gave CUDA error {code}")


class OwnStream:
    """A stream that waits for no default stream, in the form in which frameworks hand theirs over."""

    def __init__(self, driver: DriverCalls, handle: int) -> None:
        self._driver = driver
        self.cuda_stream = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.cuda_stream

    def synchronize(self) -> None:
        self._driver.call("cuStreamSynchronize", ctypes.c_void_p(self.cuda_stream))


class PrimaryContext:
    """The context that frameworks share, made current on this thread; for measuring without any framework."""

    def __init__(self, device: int = 0) -> None:
        self._driver = DriverCalls()
        self._device = ctypes.c_int()
        self._context = ctypes.c_void_p()
        self._driver.call("cuInit", ctypes.c_uint(0))
        self._driver.call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(device))
        self._driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self._driver.call("cuCtxPushCurrent_v2", self._context)
        self._streams: list[int] = []

    def new_stream(self) -> int:
        """One that does not wait for the default stream."""
        stream = ctypes.c_void_p()
        self._driver.call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(1))
        self._streams.append(stream.value or 0)
        return self._streams[-1]

    def new_own_stream(self) -> OwnStream:
        return OwnStream(self._driver, self.new_stream())

    def make_wait(self, waiting: int, for_stream: int) -> None:
        """Make what is enqueued on the first stream from now on wait for what is on the second."""
        event = ctypes.c_void_p()
        self._driver.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(2))
        self._driver.call("cuEventRecord", event, ctypes.c_void_p(for_stream))
        self._driver.call("cuStreamWaitEvent", ctypes.c_void_p(waiting), event, ctypes.c_uint(0))
        self._driver.call("cuEventDestroy_v2", event)

    @contextmanager
    def pushed(self) -> Iterator[None]:
        """Make the context current on the calling thread too, for a moment."""
        self._driver.call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def free_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def clock_khz(self) -> int:
        value = ctypes.c_int()
        self._driver.call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(13), self._device)
        return value.value

    def synchronize(self) -> None:
        self._driver.call("cuCtxSynchronize")

    def close(self) -> None:
        for stream in self._streams:
            self._driver.call("cuStreamDestroy_v2", ctypes.c_void_p(stream))
        self._driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        self._driver.call("cuDevicePrimaryCtxRelease_v2", self._device)


class Spinner:
    """Spins on one thread of the device. A context must be current on this thread.

    Stamps go to device memory: a store to the host would make the kernel about a microsecond longer at its end. They
    are in cycles of %clock64, since %globaltimer steps by a microsecond on some devices until a profiler raises it.
    """

    def __init__(self) -> None:
        self._driver = DriverCalls()
        self._launches = 0
        self._module = ctypes.c_void_p()
        self._check("cuModuleLoadData", ctypes.byref(self._module), _native.cuda_device_code().encode())
        self._by_ns = self._function("fairlap_spin_ns")
        self._by_cycles = self._function("fairlap_spin_cycles")
        self._rate = self._function("fairlap_clock_rate")
        self._empty = self._function("fairlap_empty")
        self._memory = ctypes.c_uint64()
        self._check("cuMemAlloc_v2", ctypes.byref(self._memory), ctypes.c_size_t(_KEPT * _STAMPS_BYTES))

    def spin_ns(self, stream: int, length_ns: int) -> None:
        """Spin for a time of the device's %globaltimer, to which the first and the last step may lack."""
        self._launch(self._by_ns, stream, length_ns, 0)

    def spin_cycles(self, stream: int, cycles: int) -> None:
        """Spin for cycles of %clock64, and keep its readings at the start and the end."""
        place = self._launches % _KEPT
        self._launches += 1
        self._launch(self._by_cycles, stream, cycles, self._memory.value + place * _STAMPS_BYTES)

    def cycles_per_ns(self, stream: int) -> float:
        """Return the rate of %clock64 against %globaltimer, between two steps of the latter 10 ms apart."""
        self._launch(self._rate, stream, _RATE_NS, self._memory.value)
        self._check("cuStreamSynchronize", ctypes.c_void_p(stream))
        begin_ns, first, end_ns, last = self._read(4)
        return (last - first) / (end_ns - begin_ns)

    def empty(self, stream: int) -> None:
        self._launch(self._empty, stream)

    def lengths_cycles(self) -> list[int]:
        """Read what each spin_cycles() since the last call really took; they must be done."""
        count = min(self._launches, _KEPT)
        stamps = self._read(2 * count)
        self._launches = 0
        return [last - first for first, last in zip(stamps[::2], stamps[1::2], strict=True)]

    def _read(self, count: int) -> list[int]:
        values = (ctypes.c_uint64 * max(1, count))()
        self._check("cuMemcpyDtoH_v2", values, self._memory, ctypes.c_size_t(count * ctypes.sizeof(ctypes.c_uint64)))
        return list(values)[:count]

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


def rates_gb_per_s(context: PrimaryContext, size: int, *, pinned: bool, back: bool = False) -> list[float]:
    """Copy ``size`` bytes over and over on one stream between a buffer here and one on the device; a rate each round.

    To the device, or ``back`` from it.
    """
    driver, stream = DriverCalls(), ctypes.c_void_p(context.new_stream())
    host, device = ctypes.c_void_p(), ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(device), ctypes.c_size_t(size))
    if pinned:
        driver.call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(size), ctypes.c_uint(1))
    pageable = None if pinned else ctypes.create_string_buffer(size)
    source = host if pageable is None else ctypes.c_void_p(ctypes.addressof(pageable))
    ctypes.memset(source, 1, size)
    copies = max(4, min(_MOST_COPIES, _BYTES_OF_A_ROUND // size))

    def one_round() -> float:
        begun = time.perf_counter()
        for _ in range(copies):
            if back:
                driver.call("cuMemcpyDtoHAsync_v2", source, device, ctypes.c_size_t(size), stream)
            else:
                driver.call("cuMemcpyHtoDAsync_v2", device, source, ctypes.c_size_t(size), stream)
        driver.call("cuStreamSynchronize", stream)
        return copies * size / (time.perf_counter() - begun) / 1e9

    one_round()
    rates = [one_round() for _ in range(_ROUNDS)]
    driver.call("cuMemFree_v2", device)
    if pinned:
        driver.call("cuMemFreeHost", host)
    return rates


def pinned_rate_gb_per_s(context: PrimaryContext, size: int) -> float:
    return median(rates_gb_per_s(context, size, pinned=True))


def device_copy_bytes_per_s(context: PrimaryContext, size: int) -> float:
    """Bytes read and written by copies from one buffer of the device to another, the fastest of some rounds."""
    driver, stream = DriverCalls(), ctypes.c_void_p(context.new_stream())
    buffers = [ctypes.c_uint64() for _ in range(2)]
    for buffer in buffers:
        driver.call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(size))
    copies = max(4, min(_MOST_COPIES, 16 * _BYTES_OF_A_ROUND // size))

    def one_round() -> float:
        begun = time.perf_counter()
        for _ in range(copies):
            driver.call("cuMemcpyDtoDAsync_v2", buffers[1], buffers[0], ctypes.c_size_t(size), stream)
        driver.call("cuStreamSynchronize", stream)
        return 2.0 * copies * size / (time.perf_counter() - begun)

    one_round()
    fastest = max(one_round() for _ in range(_ROUNDS))
    for buffer in buffers:
        driver.call("cuMemFree_v2", buffer)
    return fastest

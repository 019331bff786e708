"""Copies to the device made by hand, as fast as the machine makes them: what a feeder is held against."""

from __future__ import annotations

import ctypes
import time
from statistics import median

from .driver_calls import DriverCalls, PrimaryContext

MIB = 1 << 20
_BYTES_OF_A_ROUND = 1 << 30
_MOST_COPIES = 256
_ROUNDS = 5


def rates_gb_per_s(context: PrimaryContext, size: int, *, pinned: bool) -> list[float]:
    """Copies of ``size`` bytes back to back on one stream, from one buffer to one on the device; a rate a round."""
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

"""A framework that takes memory of the fake GPU for each item of its batch, from the fake driver itself."""

from __future__ import annotations

import ctypes
import os
from functools import partial
from typing import ClassVar

import numpy as np
from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.models.workload import Workload
from numpy_framework import NumpyFramework, in_float32, in_force

ITEM_BYTES = 2**30


class OutOfMemoryError(RuntimeError):
    """As PyTorch names it (torch.OutOfMemoryError)."""


class TakesDeviceMemory(NumpyFramework):
    name = "takes-device-memory"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        driver, taken = ctypes.CDLL(os.environ["FAIRLAP_LIBCUDA"]), ctypes.c_uint64()
        driver.cuInit(0)
        driver.fake_cuda_activate_primary_context.restype = ctypes.c_uint64
        driver.fake_cuda_make_current.argtypes = (ctypes.c_uint64,)
        driver.fake_cuda_make_current(driver.fake_cuda_activate_primary_context(0))
        nbytes = work.batch * ITEM_BYTES
        if error := driver.cuMemAlloc_v2(ctypes.byref(taken), ctypes.c_size_t(nbytes)):
            raise OutOfMemoryError(f"the driver returned {error} for {nbytes} bytes")
        weights = in_float32(work.weights)
        forward = work.implementation_of_reference().forward
        return Contestant(
            bind=lambda inputs: partial(forward, weights, dict(inputs)),
            done=None,
            outputs=lambda result: {name: np.array(value, np.float32) for name, value in result.items()},
            weights=lambda: weights,
            in_force=in_force(work, wanted),
            memory_bytes=lambda: {"live_peak": nbytes, "reserved_peak": nbytes},
        )

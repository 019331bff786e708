"""Memory of a device for frameworks that have none of their own, and the device that this thread works on."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.engine import _native
from fairlap.engine.cuda.libraries import DeviceFailed, native_errors_explained, require_cuda

_DRIVER = "libcuda.so.1"
_CHOSEN = "FAIRLAP_LIBCUDA"  # as the engine has it


class DeviceArrays:
    """Arrays in the memory of one device, each in whole blocks of 2 MiB, for as long as what is returned lives.

    A copy has ended when its call returns, and does not wait for work of other streams.
    """

    def __init__(self, device: int) -> None:
        require_cuda()
        with native_errors_explained():
            self._copies = _native.DeviceCopies(device)

    def room(self, nbytes: int) -> _native.DevicePages:
        with native_errors_explained():
            return _native.DevicePages(self._copies, max(nbytes, 1))

    def holding(self, array: npt.NDArray[Any]) -> _native.DevicePages:
        pages = self.room(array.nbytes)
        with native_errors_explained():
            self._copies.upload(pages.address, np.ascontiguousarray(array).data)
        return pages

    def read(self, pages: _native.DevicePages, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        found = np.empty(shape, dtype)
        with native_errors_explained():
            self._copies.download(found.data, pages.address)
        return found


def work_on_device(device: int) -> None:
    """Make the device's primary context current on this thread, for libraries that work on the current device.

    That is what ``cudaSetDevice`` does; the driver is asked, since no library of the runtime need be installed.
    """
    require_cuda()
    driver = ctypes.CDLL(os.environ.get(_CHOSEN) or _DRIVER)
    number, context = ctypes.c_int(), ctypes.c_void_p()
    for function, arguments in (
        ("cuDeviceGet", (ctypes.byref(number), ctypes.c_int(device))),
        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), number)),
        ("cuCtxPushCurrent_v2", (context,)),
    ):
        if error := getattr(driver, function)(*arguments):
            raise DeviceFailed(f"{function} failed with error {error} on CUDA device {device}")

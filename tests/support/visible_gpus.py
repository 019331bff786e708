"""The fake driver and the fake NVML of a machine with four GPUs, of which CUDA_VISIBLE_DEVICES shows some.

The fake driver does not read that variable, so this stands in for it: a device is named by the end of its UUID.
"""

from __future__ import annotations

import ctypes
import os

GPUS = 4
SHOWS_ALL = "FAKE_DRIVER_SHOWS_ALL"
"""If set, the driver ignores CUDA_VISIBLE_DEVICES."""

AT_START = "import visible_gpus; visible_gpus.show()"


def uuid_of(gpu: int) -> str:
    return f"00000000-0000-0000-0000-{gpu:012d}"


def show() -> None:
    """Of the process as it is now, in place of the driver's start."""
    cuda, nvml = (ctypes.CDLL(os.environ[name]) for name in ("FAIRLAP_LIBCUDA", "FAIRLAP_LIBNVML"))
    listed = "" if os.environ.get(SHOWS_ALL) else os.environ.get("CUDA_VISIBLE_DEVICES", "")
    seen = [int(each.rpartition("-")[2]) for each in listed.split(",")] if listed else range(GPUS)
    cuda.fake_cuda_set_device_count(len(seen))
    for number, slot in enumerate(seen):
        cuda.fake_cuda_set_device_slot(number, slot)
    cuda.fake_cuda_activate_primary_context(0)
    nvml.fake_nvml_set_device_count(GPUS)

"""NVIDIA's Python bindings as far as clocks are locked by them: each call is a line of the file ``NVML_CALLS``.

Signatures and the error are those of nvidia-ml-py 13 (``nvmlDeviceSetGpuLockedClocks`` needs root).
"""
# ruff: noqa: N802, N803, N816

from __future__ import annotations

import os
from pathlib import Path

NVML_CLOCK_LIMIT_ID_TDP = 0xFFFFFF01
nvmlLib: object = None
_nvmlGetFunctionPointer_cache: dict[str, object] = {}


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__({4: "Insufficient Permissions"}.get(value, "Unknown Error"))
        self.value = value


def _called(line: str) -> None:
    with Path(os.environ["NVML_CALLS"]).open("a") as calls:
        calls.write(f"{line}\n")


def nvmlInit() -> None: ...


def nvmlShutdown() -> None: ...


def nvmlDeviceGetCount() -> int:
    return 1


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    return index


def nvmlDeviceGetMigMode(handle: int) -> list[int]:
    return [0, 0]


def nvmlDeviceSetGpuLockedClocks(handle: int, minGpuClockMHz: int, maxGpuClockMHz: int) -> None:
    if os.environ.get("NVML_REFUSES"):
        raise NVMLError(4)
    _called(f"lock {handle} {minGpuClockMHz} {maxGpuClockMHz}")


def nvmlDeviceResetGpuLockedClocks(handle: int) -> None:
    _called(f"reset {handle}")


NVML_DEVICE_MIG_ENABLE = 1

"""Memory of a GPU that is in use, by whomever; and which of NVML's devices a framework's ``cuda:N`` is."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fairlap.machine import nvml

_ORDER = "CUDA_DEVICE_ORDER"
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def used_bytes(device: str) -> int | str:
    """Or why it cannot be told."""
    return _memory_of(device, "used")


def whole_bytes(device: str) -> int | str:
    return _memory_of(device, "total")


def nvml_index_of(device: str, count: int, variables: Mapping[str, str]) -> int | str:
    """NVML counts devices by their slots, CUDA from the fastest on, unless it is told otherwise."""
    number = int(device.partition(":")[2] or 0)
    if count == 0:
        return "NVML lists no device"
    if count == 1:
        return 0
    visible = variables.get(_VISIBLE, "")
    if variables.get(_ORDER) != "PCI_BUS_ID":
        return f"which of {count} devices {device} is cannot be told; set {_ORDER}=PCI_BUS_ID"
    if not visible:
        return number if number < count else f"NVML lists {count} devices; {device} is none of them"
    listed = visible.split(",")
    if number >= len(listed) or not listed[number].strip().isdecimal():
        return f"which device {device} is cannot be told from {_VISIBLE}={visible}; list devices by number"
    return int(listed[number])


def _memory_of(device: str, what: str) -> int | str:
    told = nvml.memory_by_device()
    if isinstance(told, str):
        return told
    index = nvml_index_of(device, len(told), os.environ)
    if isinstance(index, str):
        return index
    if index >= len(told) or told[index] is None:
        return f"NVML does not tell the memory of device {index}"
    return int(getattr(told[index], what))

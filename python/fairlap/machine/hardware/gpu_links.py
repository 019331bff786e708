"""What connects a GPU to others and to the processor: its NVLinks, and where it is on the bus."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlap import quantity_text
from fairlap.machine.root import Root

_VERSION = re.compile(r"NVML_NVLINK_VERSION_(\d)_(\d)")
_BUS = "sys/bus/pci/devices"


@dataclass(frozen=True)
class NvLinks:
    """``version`` is empty where the driver does not report it."""

    active: int
    present: int
    version: str = ""

    def __str__(self) -> str:
        """``18 links of version 4.0``, or ``17 of 18 links of version 4.0``."""
        some = f"{self.active} of " if self.active < self.present else ""
        version = f" of version {self.version}" if self.version else ""
        return f"{some}{quantity_text.count(self.present, 'link')}{version}"


def nvlinks(nvml: Any, read: Callable[..., Any]) -> NvLinks | None:
    """None for a device without any. ``read`` asks a function of NVML about one link; None is what is not supported."""
    states = [
        (link, state)
        for link in range(nvml.NVML_NVLINK_MAX_LINKS)
        if (state := read(nvml.nvmlDeviceGetNvLinkState, link)) is not None
    ]
    if not states:
        return None
    active = [link for link, state in states if state == nvml.NVML_FEATURE_ENABLED]
    version = read(nvml.nvmlDeviceGetNvLinkVersion, (active or [states[0][0]])[0])
    return NvLinks(len(active), len(states), "" if version is None else _version_named(nvml, version))


def _version_named(nvml: Any, number: int) -> str:
    """``4.0``: NVML numbers the versions, and its bindings name the numbers."""
    for name in dir(nvml):
        if (found := _VERSION.fullmatch(name)) and getattr(nvml, name) == number:
            return f"{found[1]}.{found[2]}"
    return ""


def kernels_address(nvmls: str) -> str:
    """Write a PCI address as the kernel does: ``0000:c1:00.0`` for NVML's ``00000000:C1:00.0``."""
    domain, _, rest = nvmls.lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}"
    except ValueError:
        return ""


def memory_node(root: Root, address: str) -> int | None:
    """Read to which node of the machine's memory a device is attached; None where the kernel does not say."""
    node = root.number(f"{_BUS}/{address}/numa_node") if address else None
    return None if node is None or node < 0 else node

"""What connects a GPU to others and to the processor: its NVLinks, and where it is on the bus."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlap import quantity_text
from fairlap.machine.root import Root

# Bits a second of one lane and one direction, after the coding that each generation of PCI Express has: 8b/10b,
# 128b/130b, and since 6.0 flits of 256 bytes of which 242 are packets (PCI Express Base Specification 6.0).
_LANE_BITS_PER_S = {
    1: 2.5e9 * 8 / 10,
    2: 5e9 * 8 / 10,
    3: 8e9 * 128 / 130,
    4: 16e9 * 128 / 130,
    5: 32e9 * 128 / 130,
    6: 64e9 * 242 / 256,
}
_VERSION = re.compile(r"NVML_NVLINK_VERSION_(\d)_(\d)")
_BUS = "sys/bus/pci/devices"


class PcieLink(msgspec.Struct, frozen=True):
    """A device's link to the processor as it was trained, and the most that device and slot allow."""

    generation: int
    width: int
    most_generation: int | None = None
    most_width: int | None = None

    @property
    def bytes_per_s(self) -> float | None:
        """Of one direction, with what the headers of packets take; None of a generation that is not known."""
        return _lanes_bytes_per_s(self.generation, self.width)

    @property
    def most_bytes_per_s(self) -> float | None:
        return _lanes_bytes_per_s(self.most_generation or self.generation, self.most_width or self.width)

    def __str__(self) -> str:
        """``PCIe 5.0 x16``, or ``PCIe 4.0 x8 of 5.0 x16`` where it was trained to less."""
        now, most = (self.generation, self.width), (self.most_generation, self.most_width)
        less = None not in most and most != now
        return f"PCIe {now[0]}.0 x{now[1]}" + (f" of {most[0]}.0 x{most[1]}" if less else "")


def _lanes_bytes_per_s(generation: int, width: int) -> float | None:
    bits_per_s = _LANE_BITS_PER_S.get(generation)
    return None if bits_per_s is None else bits_per_s * width / 8


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


def joined_by_nvlink(nvml: Any, one: Any, other: Any) -> bool | None:
    """Whether two devices reach each other over NVLink, through switches or not; None where NVML does not say."""
    try:
        status = nvml.nvmlDeviceGetP2PStatus(one, other, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except nvml.NVMLError:
        return None
    return bool(status == nvml.NVML_P2P_STATUS_OK)


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

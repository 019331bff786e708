"""How fast copies go between a GPU, its host and other GPUs: measured, beside what PCIe allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fairlap import quantity_text
from fairlap.engine import _native
from fairlap.engine.cuda.libraries import native_errors_explained, require_cuda
from fairlap.engine.cuda.roofs import DeviceUnderTrial
from fairlap.engine.roofs import Trials
from fairlap.errors import FairlapError
from fairlap.machine.hardware.cuda_devices import Board, board_of
from fairlap.machine.hardware.gpu import NvmlAbsent, gpus, open_nvml, or_none
from fairlap.machine.hardware.gpu_links import PcieLink, joined_by_nvlink, kernels_address
from fairlap.machine.hardware.roofs import Link, Roofs, roof_in

TO_DEVICE, FROM_DEVICE, BOTH = "host to device", "device to host", "both ways at once"
BETWEEN = ("to ", "from ")  # before the PCI address of another device

_WAYS: dict[str, Literal["to_device", "from_device", "both"]] = {
    TO_DEVICE: "to_device",
    FROM_DEVICE: "from_device",
    BOTH: "both",
}
_TURNS = 5


def host_links(tried: DeviceUnderTrial, seconds: float) -> tuple[dict[str, Link], dict[str, str]]:
    """Measure copies from and to the host for ``seconds`` each; also return why any could not be."""
    trials: dict[str, Trials] = {}
    absent: dict[str, str] = {}
    for way, name in _WAYS.items():
        try:
            trials[way] = tried.copies(name)
        except FairlapError as error:
            absent[way] = str(error)
    _take_turns(trials, seconds)
    return {way: Link(roof_in(each), "PCIe") for way, each in trials.items()}, absent


def trained_pcie(device: str) -> PcieLink | None:
    """Read the link right after copies: it falls to a lower generation when the device is idle."""
    board = board_of(device)
    found = [gpu for gpu in gpus().devices if isinstance(board, Board) and gpu.index == board.index]
    for gpu in found:
        if gpu.pcie_generation is not None and gpu.pcie_width is not None:
            return PcieLink(gpu.pcie_generation, gpu.pcie_width, gpu.most_pcie_generation, gpu.most_pcie_width)
    return None


def other_devices(device: int) -> dict[int, str]:
    """Return the PCI addresses of the other devices that this process sees, by their numbers. Starts none."""
    require_cuda()
    with native_errors_explained():
        found = _native.cuda_device_identities()
    return {number: kernels_address(address) for number, (address, _) in enumerate(found) if number != device}


def links_between(device: int, seconds: float) -> tuple[dict[str, Link], dict[str, str]]:
    """Measure copies between the device and every other one, each way for ``seconds``."""
    tried = DeviceUnderTrial(device)
    links: dict[str, Link] = {}
    absent: dict[str, str] = {}
    for number, address in other_devices(device).items():
        try:
            links |= _between(tried, device, number, address, seconds)
        except FairlapError as error:
            absent |= {f"{word}{address}": str(error) for word in BETWEEN}
    return links, absent


def _between(tried: DeviceUnderTrial, device: int, number: int, address: str, seconds: float) -> dict[str, Link]:
    other = DeviceUnderTrial(number)
    (there, direct), (back, _) = tried.copies_to(other), other.copies_to(tried)
    trials = dict(zip((f"{word}{address}" for word in BETWEEN), (there, back), strict=True))
    _take_turns(trials, seconds)
    by = _way_between(device, number) if direct else "host memory"
    return {way: Link(roof_in(each), by, other.facts.name) for way, each in trials.items()}


def _way_between(one: int, other: int) -> str:
    boards = [board_of(f"cuda:{number}") for number in (one, other)]
    try:
        with open_nvml() as nvml:
            handles = [
                or_none(nvml.nvmlDeviceGetHandleByIndex, board.index) if isinstance(board, Board) else None
                for board in boards
            ]
            joined = None if None in handles else joined_by_nvlink(nvml, *handles)
    except NvmlAbsent:
        joined = None
    return "peer access" if joined is None else "NVLink" if joined else "PCIe"


def _take_turns(trials: Mapping[str, Trials], seconds: float) -> None:
    for _ in range(_TURNS):
        for each in trials.values():
            each.take(seconds / _TURNS)


def share_of_pcie(roofs: Roofs, way: str) -> float | None:
    """How much of the rate that the link was trained to the copies reached; None where that rate is not known."""
    link, pcie = roofs.links.get(way), roofs.pcie
    if way not in _WAYS or link is None or pcie is None or pcie.bytes_per_s is None:
        return None
    return link.bytes_per_s.value / (pcie.bytes_per_s * (2 if way == BOTH else 1))


def link_facts(roofs: Roofs | None) -> dict[str, str]:
    """Write the links of a device as facts: rate, share of what PCIe allows, and what the link was trained to."""
    if roofs is None or not roofs.links:
        return {}
    facts = {f"{roofs.device} {way}": _fact(roofs, way, link) for way, link in roofs.links.items()}
    return facts if roofs.pcie is None else {**facts, f"{roofs.device} link": str(roofs.pcie)}


def _fact(roofs: Roofs, way: str, link: Link) -> str:
    share = share_of_pcie(roofs, way)
    of = "" if share is None else f", {quantity_text.share(share)} of {roofs.pcie}"
    return f"{link.bytes_per_s.value / 1e9:,.1f} GB/s by {link.by}{of}"

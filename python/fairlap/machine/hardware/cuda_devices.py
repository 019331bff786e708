"""Which of NVML's devices a framework's ``cuda:N`` is, and the memory of that one.

NVML numbers every device by its slot. CUDA numbers those that the process may see, the fastest first or as
CUDA_VISIBLE_DEVICES lists them: by number, by UUID or by the name of a MIG instance. Only the driver knows the result.
Asking it would start it before the framework does, whose own start is timed, so a separate process asks.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlap.errors import NotAvailable, reason_of
from fairlap.machine.hardware.gpu import DeviceMemory, NvmlAbsent, device_memory, open_nvml, or_none

_ASK = "import json; from fairlap.engine import _native; print(json.dumps(_native.cuda_device_identities()))"
_LONGEST_ANSWER_S = 60.0
_ADDRESS_DIGITS = 8  # of the domain; the driver writes four of them


_BY_UUID = "GPU-"


@dataclass(frozen=True)
class Board:
    """One of NVML's devices, or an instance of one that is in MIG mode."""

    index: int
    instance: str = ""  # "MIG-" and its UUID

    @property
    def is_whole(self) -> bool:
        return not self.instance


@dataclass(frozen=True)
class VisibleDevice:
    """A device that CUDA shows this process. ``name`` in CUDA_VISIBLE_DEVICES shows it alone."""

    name: str  # "GPU-" or "MIG-" and its UUID
    address: str  # of its board


def each_device(devices: str) -> tuple[str, ...]:
    """List the devices in "cuda:0,cuda:1", as those of several processes are written."""
    return tuple(devices.split(","))


def named_in(facts: Mapping[str, str], devices: str) -> str:
    """Name what kind of GPU these are by the facts of their machine, ``2 x NVIDIA H100``; empty if one is unknown."""
    names = [facts.get(f"gpu {device.partition(':')[2] or '0'}", "") for device in each_device(devices)]
    kinds = Counter(names)
    return "" if "" in kinds else ", ".join(f"{count} x {name}" if count > 1 else name for name, count in kinds.items())


def require_driver(device: str) -> None:
    """Refuse a GPU on a machine without NVIDIA's driver.

    That is done once, not in every contestant, and before an environment of gigabytes is made for one.
    """
    if device == "cpu":
        return
    from fairlap.engine import _native

    if absent := _native.cuda_absent_because():
        raise NotAvailable(f"cannot race on {device}: {absent}")


def visible_devices() -> tuple[VisibleDevice, ...] | str:
    """Every device in CUDA's order, or why they are not known."""
    seen = _seen_by_cuda(os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("CUDA_DEVICE_ORDER"))
    if isinstance(seen, str):
        return seen
    try:
        with open_nvml() as nvml:
            divided = {_address_of(nvml, handle) for handle in _handles(nvml) if _is_divided(nvml, handle)}
    except NvmlAbsent as reason:
        return str(reason)
    return tuple(
        VisibleDevice(f"{'MIG-' if _full(address) in divided else _BY_UUID}{uuid}", _full(address))
        for address, uuid in seen
    )


def board_of(device: str) -> Board | str:
    """Or why it cannot be determined. The device may be given by its UUID, "GPU-...", whatever this process sees."""
    try:
        with open_nvml() as nvml:
            return _board_of(nvml, device)
    except NvmlAbsent as reason:
        return str(reason)


def used_bytes(device: str) -> int | str:
    """Or why they are not known."""
    memory = _memory_of(device)
    return memory if isinstance(memory, str) else memory.used


def total_bytes(device: str) -> int | str:
    memory = _memory_of(device)
    return memory if isinstance(memory, str) else memory.total


def _memory_of(device: str) -> DeviceMemory | str:
    try:
        with open_nvml() as nvml:
            board = _board_of(nvml, device)
            if isinstance(board, str):
                return board
            handle = (
                or_none(nvml.nvmlDeviceGetHandleByIndex, board.index)
                if board.is_whole
                else or_none(nvml.nvmlDeviceGetHandleByUUID, board.instance)
            )
            found = device_memory(nvml, handle)
            return (
                f"NVML does not report the memory of {board.instance or f'device {board.index}'}"
                if found is None
                else found
            )
    except NvmlAbsent as reason:
        return str(reason)


def _board_of(nvml: Any, device: str) -> Board | str:
    handles = _handles(nvml)
    if not handles:
        return "NVML lists no device"
    if device.startswith(_BY_UUID):
        named = ["" if each is None else _text(or_none(nvml.nvmlDeviceGetUUID, each) or "") for each in handles]
        return Board(named.index(device)) if device in named else f"NVML lists no {device}"
    if len(handles) == 1 and not _is_divided(nvml, handles[0]):
        return Board(0)
    seen = _seen_by_cuda(os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("CUDA_DEVICE_ORDER"))
    if isinstance(seen, str):
        return f"cannot determine which of {len(handles)} devices {device} is: {seen}"
    number = int(device.partition(":")[2] or 0)
    if number >= len(seen):
        return f"CUDA sees {len(seen)} devices; {device} is not among them"
    address, uuid = seen[number]
    for index, handle in enumerate(handles):
        if _address_of(nvml, handle) == _full(address):
            return Board(index, f"MIG-{uuid}" if _is_divided(nvml, handle) else "")
    return f"NVML does not list {device}, which CUDA finds at {address}"


def _handles(nvml: Any) -> list[Any]:
    """In NVML's order; None of one that was lost."""
    return [or_none(nvml.nvmlDeviceGetHandleByIndex, index) for index in range(or_none(nvml.nvmlDeviceGetCount) or 0)]


def _address_of(nvml: Any, handle: Any) -> str:
    pci = None if handle is None else or_none(nvml.nvmlDeviceGetPciInfo, handle)
    return "" if pci is None else _full(_text(pci.busId))


def _is_divided(nvml: Any, handle: Any) -> bool:
    """Whether the device is in MIG mode, in which a process sees one of its instances."""
    mode = None if handle is None else or_none(nvml.nvmlDeviceGetMigMode, handle)
    return mode is not None and mode[0] == nvml.NVML_DEVICE_MIG_ENABLE


def _full(address: str) -> str:
    """With a domain of eight digits, as NVML writes it and the driver does not."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain.zfill(_ADDRESS_DIGITS)}:{rest}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


@functools.cache
def _seen_by_cuda(visible: str | None, order: str | None) -> list[tuple[str, str]] | str:
    """Ask CUDA for the PCI address and UUID of each device, in the order of the process.

    Returns why they are unknown where it does not answer. The arguments are what the answer depends on.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _ASK],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_LONGEST_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the driver could not be asked: {reason_of(error)}"
    if asked.returncode != 0:
        lines = asked.stderr.strip().splitlines()
        return lines[-1] if lines else f"the process that asks the driver ended with status {asked.returncode}"
    return [(address, uuid) for address, uuid in json.loads(asked.stdout)]

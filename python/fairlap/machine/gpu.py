"""NVIDIA's management library, opened at run time. It makes no context, so asking disturbs nobody on the device.

The GPUs of this machine, as facts.

Memory of a GPU that is in use, by whomever; and which of NVML's devices a framework's ``cuda:N`` is.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fairlap.machine.root import size_text

_NAME = "libnvidia-ml.so.1"
_CHOSEN = "FAIRLAP_LIBNVML"  # a library to open in place of the driver's, for tests and for odd installations
_TEXT_BYTES = 96
_SUCCESS = 0
_INSUFFICIENT_SIZE = 7
_REASONS = {
    9: "the driver is not loaded",
    4: "no permission",
    12: "the driver's library is not there",
    15: "the GPU fell off the bus",
    18: "the driver and its library are of different versions; restart the machine",
}
_SM, _MEMORY = 1, 2  # of the clocks
_MOST_PROCESSES = 64


class _Process(ctypes.Structure):
    """``nvmlProcessInfo_t`` of the third version of the call."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


@dataclass(frozen=True)
class Gpu:
    """What one device told. None is what it would not tell."""

    index: int
    name: str
    memory_bytes: int | None = None
    sm_mhz: int | None = None
    most_sm_mhz: int | None = None
    memory_mhz: int | None = None
    most_memory_mhz: int | None = None
    power_limit_mw: int | None = None
    default_power_limit_mw: int | None = None
    persistence: bool | None = None
    ecc: bool | None = None
    mig: bool | None = None
    pcie_generation: int | None = None
    most_pcie_generation: int | None = None
    pcie_width: int | None = None
    most_pcie_width: int | None = None
    clock_reasons: int | None = None  # bits: why the clock is not at its highest
    processes: tuple[int, ...] | None = None  # ids of those that compute on it


@dataclass(frozen=True)
class Gpus:
    """All devices of this machine, or why there are none."""

    devices: tuple[Gpu, ...] = ()
    driver: str = ""
    cuda: str = ""
    absent: str = ""


@dataclass(frozen=True)
class DeviceMemory:
    total: int
    used: int  # by whomever


def gpus() -> Gpus:
    library = _library()
    return Gpus(absent=library) if isinstance(library, str) else gpus_told_by(library)


def memory_by_device() -> list[DeviceMemory | None] | str:
    """In NVML's order; or why there are no devices."""
    library = _library()
    if isinstance(library, str):
        return library
    with _started(library) as why_not:
        if why_not:
            return why_not
        count = _number(library, "nvmlDeviceGetCount_v2", ctypes.c_uint)
        return [_memory(library, index) for index in range(count or 0)]


def _library() -> Any:
    """Or why it cannot be opened."""
    name = os.environ.get(_CHOSEN) or _NAME
    try:
        return ctypes.CDLL(name)
    except OSError:
        return f"{name} cannot be opened: there is no NVIDIA driver here"


def gpus_told_by(library: Any) -> Gpus:
    """By a library with NVML's functions; any of them may be missing, as from an old driver."""
    with _started(library) as why_not:
        if why_not:
            return Gpus(absent=why_not)
        count = _number(library, "nvmlDeviceGetCount_v2", ctypes.c_uint)
        found = [_gpu(library, index) for index in range(count or 0)]
        devices = tuple(gpu for gpu in found if gpu is not None)
        absent = "" if devices else "the driver is there and sees no device"
        return Gpus(devices, _driver(library), _cuda(library), absent)


@contextmanager
def _started(library: Any) -> Iterator[str]:
    """Why it could not be started; empty when it was."""
    code = _call(library, "nvmlInit_v2")
    if code != _SUCCESS:
        told = "lacks nvmlInit_v2" if code is None else _REASONS.get(code, f"answered with error {code}")
        yield f"NVIDIA's management library would not start: {told}"
        return
    try:
        yield ""
    finally:
        _call(library, "nvmlShutdown")


def _handle(library: Any, index: int) -> ctypes.c_void_p | None:
    """None for a device that was lost."""
    handle = ctypes.c_void_p()
    code = _call(library, "nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
    return handle if code == _SUCCESS else None


def _memory(library: Any, index: int) -> DeviceMemory | None:
    handle, told = _handle(library, index), _Memory()
    if handle is None or _call(library, "nvmlDeviceGetMemoryInfo", handle, ctypes.byref(told)) != _SUCCESS:
        return None
    return DeviceMemory(int(told.total), int(told.used))


def _gpu(library: Any, index: int) -> Gpu | None:
    handle = _handle(library, index)
    if handle is None:
        return None

    def number(function: str, *before: Any, kind: Any = ctypes.c_uint, after: int = 0) -> int | None:
        return _number(library, function, kind, handle, *before, after=after)

    def switch(function: str, after: int = 0) -> bool | None:
        value = number(function, after=after)
        return None if value is None else value == 1

    memory = _memory(library, index)
    reasons = number("nvmlDeviceGetCurrentClocksEventReasons", kind=ctypes.c_ulonglong)
    if reasons is None:  # the name before CUDA 12.2
        reasons = number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
    return Gpu(
        index=index,
        name=_text(library, "nvmlDeviceGetName", handle) or "unnamed",
        memory_bytes=None if memory is None else memory.total,
        sm_mhz=number("nvmlDeviceGetClockInfo", ctypes.c_int(_SM)),
        most_sm_mhz=number("nvmlDeviceGetMaxClockInfo", ctypes.c_int(_SM)),
        memory_mhz=number("nvmlDeviceGetClockInfo", ctypes.c_int(_MEMORY)),
        most_memory_mhz=number("nvmlDeviceGetMaxClockInfo", ctypes.c_int(_MEMORY)),
        power_limit_mw=number("nvmlDeviceGetEnforcedPowerLimit"),
        default_power_limit_mw=number("nvmlDeviceGetPowerManagementDefaultLimit"),
        persistence=switch("nvmlDeviceGetPersistenceMode"),
        ecc=switch("nvmlDeviceGetEccMode", after=1),
        mig=switch("nvmlDeviceGetMigMode", after=1),
        pcie_generation=number("nvmlDeviceGetCurrPcieLinkGeneration"),
        most_pcie_generation=number("nvmlDeviceGetMaxPcieLinkGeneration"),
        pcie_width=number("nvmlDeviceGetCurrPcieLinkWidth"),
        most_pcie_width=number("nvmlDeviceGetMaxPcieLinkWidth"),
        clock_reasons=reasons,
        processes=_processes(library, handle),
    )


def _processes(library: Any, handle: ctypes.c_void_p) -> tuple[int, ...] | None:
    room = (_Process * _MOST_PROCESSES)()
    count = ctypes.c_uint(_MOST_PROCESSES)
    code = _call(library, "nvmlDeviceGetComputeRunningProcesses_v3", handle, ctypes.byref(count), room)
    if code not in (_SUCCESS, _INSUFFICIENT_SIZE):
        return None
    return tuple(int(room[place].pid) for place in range(min(count.value, _MOST_PROCESSES)))


def _driver(library: Any) -> str:
    return _text(library, "nvmlSystemGetDriverVersion")


def _cuda(library: Any) -> str:
    version = _number(library, "nvmlSystemGetCudaDriverVersion_v2", ctypes.c_int)
    return "" if version is None else f"{version // 1000}.{version % 1000 // 10}"


def _text(library: Any, function: str, *arguments: Any) -> str:
    room = ctypes.create_string_buffer(_TEXT_BYTES)
    code = _call(library, function, *arguments, room, ctypes.c_uint(_TEXT_BYTES))
    return room.value.decode(errors="replace") if code == _SUCCESS else ""


def _number(library: Any, function: str, kind: Any, *arguments: Any, after: int = 0) -> int | None:
    """The first value that a function writes; ``after`` more follow, which some insist on."""
    value = kind()
    others = [ctypes.byref(kind()) for _ in range(after)]
    code = _call(library, function, *arguments, ctypes.byref(value), *others)
    return int(value.value) if code == _SUCCESS else None


def _call(library: Any, function: str, *arguments: Any) -> int | None:
    """NVML's own status; None where this library has no such function."""
    found = getattr(library, function, None)
    return None if found is None else int(found(*arguments))


def gpu_facts(told: Gpus) -> dict[str, str]:
    """``driver`` and ``cuda`` are the names under which comparisons of runs know them."""
    found = {"driver": told.driver, "cuda": told.cuda, "gpu": told.absent and f"none: {told.absent}"}
    for gpu in told.devices:
        found |= {f"gpu {gpu.index} {what}".rstrip(): value for what, value in _facts(gpu).items()}
    return found


def _facts(gpu: Gpu) -> dict[str, str]:
    return {
        "": gpu.name,
        "memory": "" if gpu.memory_bytes is None else size_text(gpu.memory_bytes),
        "clock": _of(gpu.sm_mhz, gpu.most_sm_mhz, "MHz"),
        "memory clock": _of(gpu.memory_mhz, gpu.most_memory_mhz, "MHz"),
        "power limit": _watts(gpu),
        "persistence": _switch(gpu.persistence),
        "ecc": _switch(gpu.ecc),
        "mig": _switch(gpu.mig),
        "pcie generation": _of(gpu.pcie_generation, gpu.most_pcie_generation),
        "pcie width": _of(gpu.pcie_width, gpu.most_pcie_width),
    }


def _switch(value: bool | None) -> str:
    return "" if value is None else "on" if value else "off"


def _of(now: int | None, most: int | None, unit: str = "") -> str:
    if now is None:
        return ""
    told = str(now) if most is None or most == now else f"{now} of {most}"
    return f"{told} {unit}".strip()


def _watts(gpu: Gpu) -> str:
    if gpu.power_limit_mw is None:
        return ""
    default = gpu.default_power_limit_mw
    lowered = f" of {default / 1000:g}" if default is not None and default != gpu.power_limit_mw else ""
    return f"{gpu.power_limit_mw / 1000:g}{lowered} W"


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
    told = memory_by_device()
    if isinstance(told, str):
        return told
    index = nvml_index_of(device, len(told), os.environ)
    if isinstance(index, str):
        return index
    if index >= len(told) or told[index] is None:
        return f"NVML does not tell the memory of device {index}"
    return int(getattr(told[index], what))

"""The GPUs of this machine as NVIDIA's management library reports them. NVML makes no context on a device."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fairlap import quantity_text
from fairlap.machine.hardware.gpu_links import NvLinks, kernels_address, memory_node, nvlinks
from fairlap.machine.root import THIS_MACHINE, Root

_LIBRARY = "libnvidia-ml.so.1"
_CHOSEN = "FAIRLAP_LIBNVML"  # a library to open in place of the driver's, for tests and for odd installations
# Bits of the reasons why a clock is not at its highest.
SLOWED_BY_HEAT = 0x20 | 0x40  # by the driver, or by the device itself
SLOWED_BY_POWER = 0x8 | 0x80  # by the device, or by a power brake
_MISMATCH = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
_MPS_PIPES = "/tmp/nvidia-mps"  # where the control daemon has its pipes and the file with its id, by default
_MPS_DAEMON = "nvidia-cuda-mps-control.pid"
_MPS_PIPES_VARIABLE = "CUDA_MPS_PIPE_DIRECTORY"
_MPS_SHARE_VARIABLE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"


@dataclass(frozen=True)
class Gpu:
    """One device. None is what it does not report."""

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
    instances: tuple[str, ...] = ()  # of a device in MIG mode, by their sizes
    pcie_generation: int | None = None
    most_pcie_generation: int | None = None
    pcie_width: int | None = None
    most_pcie_width: int | None = None
    nvlinks: NvLinks | None = None
    address: str = ""  # on the PCI bus, as the kernel writes it
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
    used: int  # by all processes


class NvmlAbsent(Exception):
    """The reason why no device can be queried."""


def gpus() -> Gpus:
    try:
        with open_nvml() as nvml:
            found = [_gpu(nvml, index) for index in range(or_none(nvml.nvmlDeviceGetCount) or 0)]
            devices = tuple(gpu for gpu in found if gpu is not None)
            cuda = or_none(nvml.nvmlSystemGetCudaDriverVersion_v2)
            return Gpus(
                devices,
                or_none(nvml.nvmlSystemGetDriverVersion) or "",
                "" if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
                "" if devices else "the driver is installed but reports no device",
            )
    except NvmlAbsent as reason:
        return Gpus(absent=str(reason))


@contextmanager
def open_nvml() -> Iterator[Any]:
    """Yield the module ``pynvml``, initialised."""
    try:
        import pynvml
    except ImportError:
        raise NvmlAbsent("nvidia-ml-py is not installed; install it with: pip install nvidia-ml-py") from None
    name = os.environ.get(_CHOSEN) or _LIBRARY
    try:
        # pynvml would load the library by its usual name, and keeps what it has found in a library.
        pynvml.nvmlLib = ctypes.CDLL(name)
    except OSError:
        raise NvmlAbsent(f"cannot load {name}: the NVIDIA driver is not installed") from None
    pynvml._nvmlGetFunctionPointer_cache.clear()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        remedy = "; restart the machine to load the driver that is installed" if error.value == _MISMATCH else ""
        raise NvmlAbsent(f"cannot initialise NVML: {error}{remedy}") from None
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def or_none(read: Callable[..., Any], *arguments: Any) -> Any:
    """None for what this device, driver or library does not support."""
    import pynvml

    try:
        return read(*arguments)
    except pynvml.NVMLError:
        return None


def device_memory(nvml: Any, handle: Any) -> DeviceMemory | None:
    memory = None if handle is None else or_none(nvml.nvmlDeviceGetMemoryInfo, handle)
    return None if memory is None else DeviceMemory(int(memory.total), int(memory.used))


def _gpu(nvml: Any, index: int) -> Gpu | None:
    handle = or_none(nvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:  # a device that was lost
        return None

    def read(function: Callable[..., Any], *arguments: Any) -> Any:
        return or_none(function, handle, *arguments)

    def switch(function: Callable[..., Any]) -> bool | None:
        """Read a switch; some report the state now and the one after a restart."""
        value = read(function)
        now = value[0] if isinstance(value, list | tuple) else value
        return None if now is None else now == nvml.NVML_FEATURE_ENABLED

    memory = device_memory(nvml, handle)
    reasons = read(nvml.nvmlDeviceGetCurrentClocksEventReasons)
    if reasons is None:  # the name before CUDA 12.2
        reasons = read(nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    processes = read(nvml.nvmlDeviceGetComputeRunningProcesses_v3)
    mig = switch(nvml.nvmlDeviceGetMigMode)
    return Gpu(
        index=index,
        name=read(nvml.nvmlDeviceGetName) or "unnamed",
        memory_bytes=None if memory is None else memory.total,
        sm_mhz=read(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        most_sm_mhz=read(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
        memory_mhz=read(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
        most_memory_mhz=read(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_MEM),
        power_limit_mw=read(nvml.nvmlDeviceGetEnforcedPowerLimit),
        default_power_limit_mw=read(nvml.nvmlDeviceGetPowerManagementDefaultLimit),
        persistence=switch(nvml.nvmlDeviceGetPersistenceMode),
        ecc=switch(nvml.nvmlDeviceGetEccMode),
        mig=mig,
        instances=_instances(nvml, handle) if mig else (),
        pcie_generation=read(nvml.nvmlDeviceGetCurrPcieLinkGeneration),
        most_pcie_generation=read(nvml.nvmlDeviceGetMaxPcieLinkGeneration),
        pcie_width=read(nvml.nvmlDeviceGetCurrPcieLinkWidth),
        most_pcie_width=read(nvml.nvmlDeviceGetMaxPcieLinkWidth),
        nvlinks=nvlinks(nvml, read),
        address=_address(read(nvml.nvmlDeviceGetPciInfo)),
        clock_reasons=reasons,
        processes=None if processes is None else tuple(process.pid for process in processes),
    )


def _instances(nvml: Any, handle: Any) -> tuple[str, ...]:
    found = []
    for index in range(or_none(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        instance = or_none(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if instance is not None:
            name = str(or_none(nvml.nvmlDeviceGetName, instance) or "unnamed")
            found.append(name.rpartition(" MIG ")[2])  # of "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
    return tuple(found)


def _address(pci: Any) -> str:
    if pci is None:
        return ""
    text = pci.busId
    return kernels_address(text.decode() if isinstance(text, bytes) else text)


def gpu_facts(found: Gpus, root: Root = THIS_MACHINE) -> dict[str, str]:
    """``driver`` and ``cuda`` are the names under which comparisons of runs know them."""
    facts = {"driver": found.driver, "cuda": found.cuda, "gpu": found.absent and f"none: {found.absent}"}
    for gpu in found.devices:
        facts |= {f"gpu {gpu.index} {what}".rstrip(): value for what, value in _facts(gpu, root).items()}
    return facts


def service_facts(root: Root, variables: Mapping[str, str]) -> dict[str, str]:
    """Whether the service runs by which processes share a GPU (MPS), and the share of it that a program may use."""
    folder = (variables.get(_MPS_PIPES_VARIABLE) or _MPS_PIPES).lstrip("/")
    daemon = root.number(f"{folder}/{_MPS_DAEMON}")
    if daemon is None or not root.exists(f"proc/{daemon}"):
        return {"gpu mps": "off"}
    share = variables.get(_MPS_SHARE_VARIABLE, "")
    return {"gpu mps": f"on, at most {share} % of the threads" if share else "on"}


def _facts(gpu: Gpu, root: Root) -> dict[str, str]:
    node = memory_node(root, gpu.address)
    return {
        "": gpu.name,
        "memory": "" if gpu.memory_bytes is None else quantity_text.size(gpu.memory_bytes),
        "clock": _of(gpu.sm_mhz, gpu.most_sm_mhz, "MHz"),
        "memory clock": _of(gpu.memory_mhz, gpu.most_memory_mhz, "MHz"),
        "power limit": _watts(gpu),
        "persistence": _switch(gpu.persistence),
        "ecc": _switch(gpu.ecc),
        "mig": ": ".join(filter(None, (_switch(gpu.mig), ", ".join(gpu.instances)))),
        "pcie generation": _of(gpu.pcie_generation, gpu.most_pcie_generation),
        "pcie width": _of(gpu.pcie_width, gpu.most_pcie_width),
        "nvlink": "" if gpu.nvlinks is None else str(gpu.nvlinks),
        "numa node": "" if node is None else str(node),
    }


def _switch(value: bool | None) -> str:
    return "" if value is None else "on" if value else "off"


def _of(now: int | None, most: int | None, unit: str = "") -> str:
    if now is None:
        return ""
    text = str(now) if most is None or most == now else f"{now} of {most}"
    return f"{text} {unit}".strip()


def _watts(gpu: Gpu) -> str:
    if gpu.power_limit_mw is None:
        return ""
    default = gpu.default_power_limit_mw
    lowered = f" of {default / 1000:g}" if default is not None and default != gpu.power_limit_mw else ""
    return f"{gpu.power_limit_mw / 1000:g}{lowered} W"

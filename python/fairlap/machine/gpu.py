"""The GPUs of this machine, as facts."""

from __future__ import annotations

from fairlap.machine.nvml import Gpu, Gpus
from fairlap.machine.root import size_text


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

"""Checks of each GPU."""

from __future__ import annotations

import os

from fairlap.machine.doctor.finding import Examined, Finding
from fairlap.machine.hardware.gpu import SLOWED_BY_HEAT, SLOWED_BY_POWER, Gpu
from fairlap.machine.programs.processes import process_name

_IDLE = 0x1  # a reason why a clock is not at its highest
_HELD = 0.95  # an idle device whose clock is this close to its highest is locked there


def check_gpus(seen: Examined) -> list[Finding]:
    if seen.gpus.absent:
        return [Finding("gpu", "note", f"none: {seen.gpus.absent}")]
    return [finding for gpu in seen.gpus.devices for finding in _findings(gpu)]


def _findings(gpu: Gpu) -> list[Finding]:
    checks = (_persistence, _clocks, _slowed, _processes, _power, _instances, _error_correction, _link, _nvlinks)
    found = [finding for check in checks if (finding := check(gpu))]
    return found or [Finding("gpu", "good", f"{gpu.name}: nothing that disturbs measurements", gpu=gpu.index)]


def _persistence(gpu: Gpu) -> Finding | None:
    if gpu.persistence is not False:
        return None
    return Finding(
        "gpu_persistence",
        "warning",
        "off: the driver shuts the device down whenever no process uses it",
        "the time to the first answer of each process includes starting the device, and clock settings are lost",
        f"sudo nvidia-smi -i {gpu.index} -pm 1",
        gpu.index,
    )


def _clocks(gpu: Gpu) -> Finding | None:
    """Check for locked clocks, which the driver does not report: a clock that falls while idle is not locked."""
    if gpu.sm_mhz is None or not gpu.most_sm_mhz or gpu.sm_mhz >= _HELD * gpu.most_sm_mhz:
        return None
    idle = gpu.clock_reasons is not None and gpu.clock_reasons & _IDLE
    why = "idle, so clocks are not locked" if idle else "not at the highest clock"
    return Finding(
        "gpu_clocks",
        "warning",
        f"{gpu.sm_mhz} of {gpu.most_sm_mhz} MHz: {why}",
        f"the clock rises during the first calls, up to {gpu.most_sm_mhz / max(gpu.sm_mhz, 1):.1f} times as high, "
        "and falls with temperature and power",
        f"sudo nvidia-smi -i {gpu.index} --lock-gpu-clocks=MHZ,MHZ with a clock that it can sustain under load",
        gpu.index,
    )


def _slowed(gpu: Gpu) -> Finding | None:
    reasons = gpu.clock_reasons or 0
    if not reasons & (SLOWED_BY_HEAT | SLOWED_BY_POWER):
        return None
    check, cause = ("gpu_thermal", "its temperature") if reasons & SLOWED_BY_HEAT else ("gpu_power", "its power supply")
    return Finding(
        check,
        "bad",
        f"slowed down by {cause}",
        "results describe the cooling or the power supply, not the framework",
        "let it cool down, and lock a clock that it can sustain",
        gpu.index,
    )


def _processes(gpu: Gpu) -> Finding | None:
    others = [pid for pid in gpu.processes or () if pid != os.getpid()]
    if not others:
        return None
    return Finding(
        "gpu_processes",
        "bad",
        f"{len(others)} compute on it: {', '.join(f'{process_name(pid)} ({pid})' for pid in others[:5])}",
        "kernels of several processes take turns on the device, so every result includes some of theirs",
        "end them, or choose another device: fairlap compare --device cuda:N",
        gpu.index,
    )


def _power(gpu: Gpu) -> Finding | None:
    limit, default = gpu.power_limit_mw, gpu.default_power_limit_mw
    if limit is None or default is None or limit >= default:
        return None
    return Finding(
        "gpu_power_limit",
        "warning",
        f"{limit / 1000:g} W, below the default of {default / 1000:g} W",
        "heavy kernels run at a lower clock than with the default limit",
        f"sudo nvidia-smi -i {gpu.index} --power-limit={default / 1000:g}",
        gpu.index,
    )


def _instances(gpu: Gpu) -> Finding | None:
    if not gpu.mig:
        return None
    return Finding(
        "gpu_mig",
        "note",
        "the device is divided into instances",
        "a result is that of one instance; others share the device's power and its link",
        f"sudo nvidia-smi -i {gpu.index} -mig 0 (ends all work on it)",
        gpu.index,
    )


def _error_correction(gpu: Gpu) -> Finding | None:
    if gpu.ecc is not False:
        return None
    return Finding(
        "gpu_ecc",
        "note",
        "error correction of its memory is off",
        "on devices with GDDR memory error correction costs bandwidth, so results differ from a device that has it on",
        f"sudo nvidia-smi -i {gpu.index} -e 1, and restart",
        gpu.index,
    )


def _link(gpu: Gpu) -> Finding | None:
    """Check the width of the link; the generation falls whenever the device is idle."""
    width, most = gpu.pcie_width, gpu.most_pcie_width
    if width is None or most is None or width >= most:
        return None
    return Finding(
        "gpu_link",
        "warning",
        f"{width} of {most} lanes to the processor",
        f"copies to and from the device take up to {most / max(width, 1):.0f} times as long",
        "put it into a slot with all lanes",
        gpu.index,
    )


def _nvlinks(gpu: Gpu) -> Finding | None:
    links = gpu.nvlinks
    if links is None or links.active == links.present:
        return None
    return Finding(
        "gpu_nvlink",
        "warning",
        f"{links.active} of {links.present} NVLinks are active",
        "copies between GPUs take longer than where all are, or go over PCIe",
        f"nvidia-smi nvlink --status -i {gpu.index}, and look for errors of the fabric manager",
        gpu.index,
    )

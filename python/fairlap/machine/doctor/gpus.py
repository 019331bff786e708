"""What disturbs figures of each GPU."""

from __future__ import annotations

import os

from fairlap.machine.doctor.finding import Examined, Finding
from fairlap.machine.gpu import Gpu

_IDLE = 0x1
_HEAT = 0x20 | 0x40  # slowed down for heat, by the driver or by the device itself
_POWER_BRAKE = 0x8 | 0x80
_HELD = 0.95  # an idle device whose clock stays this near to its highest is held there


def check_gpus(seen: Examined) -> list[Finding]:
    if seen.gpus.absent:
        return [Finding("gpu", "note", f"none: {seen.gpus.absent}")]
    return [finding for gpu in seen.gpus.devices for finding in _of(gpu)]


def _of(gpu: Gpu) -> list[Finding]:
    found = [*_persistence(gpu), *_clocks(gpu), *_slowed(gpu), *_others(gpu), *_power(gpu), *_parts(gpu), *_link(gpu)]
    name = f"gpu {gpu.index}"
    return found or [Finding(name, "good", f"{gpu.name}: nothing that disturbs")]


def _persistence(gpu: Gpu) -> list[Finding]:
    if gpu.persistence is not False:
        return []
    return [
        Finding(
            f"gpu {gpu.index} persistence",
            "warning",
            "off: the driver forgets the device whenever nobody uses it",
            "each process pays for starting the device in its time to the first answer, and set clocks are lost",
            f"sudo nvidia-smi -i {gpu.index} -pm 1",
        )
    ]


def _clocks(gpu: Gpu) -> list[Finding]:
    """The driver does not tell whether clocks are locked; a clock that falls in idle times is not."""
    if gpu.sm_mhz is None or not gpu.most_sm_mhz or gpu.sm_mhz >= _HELD * gpu.most_sm_mhz:
        return []
    idle = gpu.clock_reasons is not None and gpu.clock_reasons & _IDLE
    why = "it is idle, so they are not locked" if idle else "they are not at their highest"
    return [
        Finding(
            f"gpu {gpu.index} clocks",
            "warning",
            f"{gpu.sm_mhz} of {gpu.most_sm_mhz} MHz: {why}",
            f"the clock climbs during the first calls, up to {gpu.most_sm_mhz / max(gpu.sm_mhz, 1):.1f} times as high, "
            "and falls with heat and power",
            f"sudo nvidia-smi -i {gpu.index} --lock-gpu-clocks=MHZ,MHZ with a clock that it can hold under load",
        )
    ]


def _slowed(gpu: Gpu) -> list[Finding]:
    reasons = gpu.clock_reasons or 0
    if not reasons & (_HEAT | _POWER_BRAKE):
        return []
    what = "heat" if reasons & _HEAT else "power"
    return [
        Finding(
            f"gpu {gpu.index} {what}",
            "bad",
            f"it is being slowed down for {what}",
            "figures describe the cooling or the power supply, not the framework",
            "let it cool down, and lock a clock that it can hold",
        )
    ]


def _others(gpu: Gpu) -> list[Finding]:
    others = [pid for pid in gpu.processes or () if pid != os.getpid()]
    if not others:
        return []
    listed = ", ".join(map(str, others[:5]))
    return [
        Finding(
            f"gpu {gpu.index} processes",
            "bad",
            f"{len(others)} compute on it: {listed}",
            "kernels of several processes take turns on the device, so every figure holds some of theirs",
            "end them, or choose another device: fairlap compare --device cuda:N",
        )
    ]


def _power(gpu: Gpu) -> list[Finding]:
    limit, default = gpu.power_limit_mw, gpu.default_power_limit_mw
    if limit is None or default is None or limit >= default:
        return []
    return [
        Finding(
            f"gpu {gpu.index} power limit",
            "warning",
            f"{limit / 1000:g} W, lowered from {default / 1000:g} W",
            "heavy kernels run at a lower clock than on the same device as it is sold",
            f"sudo nvidia-smi -i {gpu.index} --power-limit={default / 1000:g}",
        )
    ]


def _parts(gpu: Gpu) -> list[Finding]:
    found = []
    if gpu.mig:
        found.append(
            Finding(
                f"gpu {gpu.index} mig",
                "note",
                "the device is divided into instances",
                "a figure is that of an instance; others share the device's power and its link",
                f"sudo nvidia-smi -i {gpu.index} -mig 0 (ends everything on it)",
            )
        )
    if gpu.ecc is False:
        found.append(
            Finding(
                f"gpu {gpu.index} ecc",
                "note",
                "error correction of its memory is off",
                "on devices with GDDR memory it costs bandwidth, so figures are not those of a device that has it on",
                f"sudo nvidia-smi -i {gpu.index} -e 1, and restart",
            )
        )
    return found


def _link(gpu: Gpu) -> list[Finding]:
    """The width tells; the generation falls whenever the device is idle."""
    width, most = gpu.pcie_width, gpu.most_pcie_width
    if width is None or most is None or width >= most:
        return []
    return [
        Finding(
            f"gpu {gpu.index} link",
            "warning",
            f"{width} of {most} lanes to the processor",
            f"copies to and from the device take up to {most / max(width, 1):.0f} times as long",
            "seat it in a full slot",
        )
    ]

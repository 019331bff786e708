"""The kernel: its version, what it does against faults of processors, its clock, its layout of addresses."""

from __future__ import annotations

import platform

from fairlap.machine.root import Root

_FAULTS = "sys/devices/system/cpu/vulnerabilities"
_CLOCKS = "sys/devices/system/clocksource/clocksource0"
_LAYOUTS = {"0": "off", "1": "on, without the heap", "2": "on"}


def kernel_facts(root: Root) -> dict[str, str]:
    return {
        "kernel": _release(root),
        "operating system": platform.system() if root.is_this_machine else "Linux",
        "distribution": _distribution(root),
        "mitigations": mitigations(root),
        "clock source": clock_source(root),
        "address randomisation": address_randomisation(root),
        "preemption": root.text("sys/kernel/realtime") and "realtime",
    }


def clock_source(root: Root) -> str:
    return root.text(f"{_CLOCKS}/current_clocksource")


def clock_sources(root: Root) -> list[str]:
    return root.text(f"{_CLOCKS}/available_clocksource").split()


def address_randomisation(root: Root) -> str:
    return _LAYOUTS.get(root.text("proc/sys/kernel/randomize_va_space"), "")


def mitigations(root: Root) -> str:
    """Only the faults that this processor has, each with what is done about it, in a few words."""
    found = []
    for name in root.names(_FAULTS):
        told = root.text(f"{_FAULTS}/{name}")
        if told and told != "Not affected":
            found.append(f"{name}: {told.removeprefix('Mitigation: ').partition(';')[0]}")
    return "; ".join(found)


def _release(root: Root) -> str:
    return root.text("proc/sys/kernel/osrelease") or (platform.release() if root.is_this_machine else "")


def _distribution(root: Root) -> str:
    for line in root.lines("etc/os-release") or root.lines("usr/lib/os-release"):
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip().strip('"')
    return ""

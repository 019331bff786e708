"""Facts about this machine that figures depend on. What it does not tell is absent."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def machine_facts() -> dict[str, str]:
    """By names that the comparison of saved runs knows."""
    readers: dict[str, Callable[[], str]] = {
        "cpu model": _cpu_model,
        "cores": lambda: str(os.cpu_count()),
        "architecture": platform.machine,
        "kernel": platform.release,
        "operating system": platform.system,
        "C library": lambda: " ".join(platform.libc_ver()).strip(),
        "governor": lambda: _GOVERNOR.read_text().strip(),
        "huge pages": lambda: _HUGE_PAGES.read_text().partition("[")[2].partition("]")[0],
        "hypervisor": _hypervisor,
        "python": lambda: f"{sys.implementation.name} {platform.python_version()}",
    }
    found = {}
    for name, read in readers.items():
        try:
            value = read()
        except (OSError, StopIteration):
            continue
        if value:
            found[name] = value
    return found


def _cpu_model() -> str:
    if _CPUINFO.exists():
        return next(line for line in _CPUINFO.read_text().splitlines() if line.startswith("model name")).partition(
            ": "
        )[2]
    return platform.processor()


def _hypervisor() -> str:
    """Whether the processor says that it runs under one."""
    flags = next(line for line in _CPUINFO.read_text().splitlines() if line.startswith("flags"))
    return "yes" if "hypervisor" in flags.split() else "no"

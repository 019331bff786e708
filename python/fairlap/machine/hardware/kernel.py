"""The kernel's version and settings: mitigations, clock source, address layout, memory."""

from __future__ import annotations

import platform

from fairlap import quantity_text
from fairlap.machine.root import Root, kilobytes

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
    """Only the faults that this processor has, each with its mitigation in a few words."""
    found = []
    for name in root.names(_FAULTS):
        state = root.text(f"{_FAULTS}/{name}")
        if state and state != "Not affected":
            found.append(f"{name}: {state.removeprefix('Mitigation: ').partition(';')[0]}")
    return "; ".join(found)


def _release(root: Root) -> str:
    return root.text("proc/sys/kernel/osrelease") or (platform.release() if root.is_this_machine else "")


def _distribution(root: Root) -> str:
    for line in root.lines("etc/os-release") or root.lines("usr/lib/os-release"):
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip().strip('"')
    return ""


def memory_facts(root: Root) -> dict[str, str]:
    memory = memory_bytes(root)
    return {
        "memory": quantity_text.size(memory["MemTotal"]) if "MemTotal" in memory else "",
        "swap": ("none" if memory["SwapTotal"] == 0 else quantity_text.size(memory["SwapTotal"]))
        if "SwapTotal" in memory
        else "",
        "swappiness": root.text("proc/sys/vm/swappiness"),
        "huge pages": chosen(root.text("sys/kernel/mm/transparent_hugepage/enabled")),
        "huge page defragmentation": chosen(root.text("sys/kernel/mm/transparent_hugepage/defrag")),
        "reserved huge pages": root.text("proc/sys/vm/nr_hugepages"),
        "overcommit": root.text("proc/sys/vm/overcommit_memory"),
        "numa balancing": root.text("proc/sys/kernel/numa_balancing"),
    }


def memory_bytes(root: Root) -> dict[str, int]:
    """Read the entries of ``/proc/meminfo``, in bytes."""
    found = {}
    for line in root.lines("proc/meminfo"):
        name, _, value = line.partition(":")
        size = kilobytes(value)
        if size is not None:
            found[name] = size * 1024
    return found


def chosen(setting: str) -> str:
    """Of ``always [madvise] never`` the one in brackets."""
    return setting.partition("[")[2].partition("]")[0]

"""The processor: its name, its cores and how they share, its caches."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping

from fairlap.machine.root import Root, kilobytes, numbers_listed

_CPUS = "sys/devices/system/cpu"
# Arm's processors give numbers for names; these are the ones in servers and in common boards.
_ARM_PARTS: Mapping[tuple[str, str], str] = {
    ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd0b"): "Cortex-A76",
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd40"): "Neoverse-V1",
    ("0x41", "0xd49"): "Neoverse-N2",
    ("0x41", "0xd4f"): "Neoverse-V2",
    ("0xc0", "0xac3"): "Ampere-1",
    ("0xc0", "0xac4"): "Ampere-1a",
}


def processor_facts(root: Root) -> dict[str, str]:
    described = _described(root)
    return {
        "cpu model": _model(root, described),
        "cores": _count(root),
        "architecture": platform.machine() if root.is_this_machine else _architecture(described),
        "microcode": described.get("microcode", ""),
        "smt": _smt(root),
        "threads per core": _threads_per_core(root),
        "sockets": _sockets(root),
        "numa nodes": _numa_nodes(root),
        "caches": _caches(root),
        "isolated cores": root.text(f"{_CPUS}/isolated"),
    }


def flags(root: Root) -> frozenset[str]:
    """What the processor says it can do; Arm calls them features."""
    described = _described(root)
    return frozenset((described.get("flags") or described.get("Features") or "").split())


def online(root: Root) -> list[int]:
    return numbers_listed(root.text(f"{_CPUS}/online"))


def siblings(root: Root, cpu: int) -> list[int]:
    """The hardware threads that share a core with this one, itself among them."""
    folder = f"{_CPUS}/cpu{cpu}/topology"
    return numbers_listed(root.text(f"{folder}/core_cpus_list") or root.text(f"{folder}/thread_siblings_list"))


def allowed(root: Root) -> list[int]:
    """The hardware threads that this process may run on."""
    for line in root.lines("proc/self/status"):
        if line.startswith("Cpus_allowed_list:"):
            return numbers_listed(line.partition(":")[2])
    return []


def _described(root: Root) -> dict[str, str]:
    """What the first processor says of itself."""
    found: dict[str, str] = {}
    for line in root.lines("proc/cpuinfo"):
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


def _model(root: Root, described: Mapping[str, str]) -> str:
    if "model name" in described:
        return described["model name"]
    if "CPU part" in described:
        maker, part = described.get("CPU implementer", ""), described["CPU part"]
        return _ARM_PARTS.get((maker, part), f"Arm implementer {maker} part {part}")
    return platform.processor() if root.is_this_machine else ""


def _architecture(described: Mapping[str, str]) -> str:
    return "aarch64" if "CPU implementer" in described else "x86_64" if "vendor_id" in described else ""


def _count(root: Root) -> str:
    listed = online(root)
    if listed:
        return str(len(listed))
    return str(os.cpu_count() or "") if root.is_this_machine else ""


def _smt(root: Root) -> str:
    """``on`` only where two hardware threads really share a core; a machine without them says nothing of it."""
    control = root.text(f"{_CPUS}/smt/control")
    shared = any(len(siblings(root, cpu)) > 1 for cpu in online(root))
    if shared:
        return "on"
    return {"off": "off", "forceoff": "off"}.get(control, "none" if online(root) else "")


def _threads_per_core(root: Root) -> str:
    most = max((len(siblings(root, cpu)) for cpu in online(root)), default=0)
    return str(most) if most else ""


def _sockets(root: Root) -> str:
    packages = {root.text(f"{_CPUS}/cpu{cpu}/topology/physical_package_id") for cpu in online(root)} - {"", "-1"}
    return str(len(packages)) if packages else ""


def _numa_nodes(root: Root) -> str:
    nodes = numbers_listed(root.text("sys/devices/system/node/online"))
    return str(len(nodes)) if nodes else ""


def _caches(root: Root) -> str:
    """Of the first core, with how many hardware threads share each."""
    found = []
    folder = f"{_CPUS}/cpu0/cache"
    for name in root.names(folder):
        size = kilobytes(root.text(f"{folder}/{name}/size"))
        if not name.startswith("index") or not size:
            continue
        kind = {"Data": "d", "Instruction": "i"}.get(root.text(f"{folder}/{name}/type"), "")
        shared = len(numbers_listed(root.text(f"{folder}/{name}/shared_cpu_list")))
        told = f"{size // 1024} MiB" if size >= 1024 and size % 1024 == 0 else f"{size} KiB"
        sharing = f" for {shared}" if shared > 1 else ""
        found.append(f"L{root.text(f'{folder}/{name}/level')}{kind} {told}{sharing}")
    return ", ".join(found)

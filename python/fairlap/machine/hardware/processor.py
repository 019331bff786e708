"""The processor: its name, its cores, its caches, and what sets its clock."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.machine.hardware.instructions import instructions_in
from fairlap.machine.root import THIS_MACHINE, Root, kilobytes, numbers_listed

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
_NODES = "sys/devices/system/node"


def processor_facts(root: Root) -> dict[str, str]:
    described = _described(root)
    return {
        "cpu model": _model(root, described),
        "cores": _count(root),
        "architecture": platform.machine() if root.is_this_machine else _architecture(described),
        "microcode": described.get("microcode", ""),
        "instructions": ", ".join(instructions_in(flags(root))),
        "smt": _smt(root),
        "threads per core": _threads_per_core(root),
        "sockets": _sockets(root),
        "numa nodes": _numa_nodes(root),
        "caches": _caches(root),
        "isolated cores": root.text(f"{_CPUS}/isolated"),
    }


def flags(root: Root) -> frozenset[str]:
    """Read the processor's features, by the kernel's names."""
    described = _described(root)
    return frozenset((described.get("flags") or described.get("Features") or "").split())


def online(root: Root) -> list[int]:
    return numbers_listed(root.text(f"{_CPUS}/online"))


def siblings(root: Root, cpu: int) -> list[int]:
    """List the hardware threads that share a core with this one, including itself."""
    folder = f"{_CPUS}/cpu{cpu}/topology"
    return numbers_listed(root.text(f"{folder}/core_cpus_list") or root.text(f"{folder}/thread_siblings_list"))


def allowed(root: Root) -> list[int]:
    """List the hardware threads that this process may run on."""
    for line in root.lines("proc/self/status"):
        if line.startswith("Cpus_allowed_list:"):
            return numbers_listed(line.partition(":")[2])
    return []


def cores_by_node(root: Root = THIS_MACHINE) -> dict[int, tuple[int, ...]]:
    """List the cores near to each part of the memory; empty where the system does not describe its NUMA nodes."""
    found = {node: numbers_listed(root.text(f"{_NODES}/node{node}/cpulist")) for node in _nodes(root)}
    return {node: tuple(sorted(cores)) for node, cores in found.items() if cores}


def available_cores_by_node(root: Root = THIS_MACHINE) -> dict[int, tuple[int, ...]]:
    """Of the cores that this process may use."""
    here = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    found = {node: tuple(core for core in cores if core in here) for node, cores in cores_by_node(root).items()}
    return {node: cores for node, cores in found.items() if cores}


def _described(root: Root) -> dict[str, str]:
    """Read the entries of the first processor in ``/proc/cpuinfo``."""
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
    """``on`` only where two hardware threads really share a core; a machine without them reports nothing."""
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
    nodes = _nodes(root)
    return str(len(nodes)) if nodes else ""


def _nodes(root: Root) -> list[int]:
    return numbers_listed(root.text(f"{_NODES}/online"))


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
        sharing = f" for {shared}" if shared > 1 else ""
        found.append(f"L{root.text(f'{folder}/{name}/level')}{kind} {quantity_text.size(size * 1024)}{sharing}")
    return ", ".join(found)


@dataclass(frozen=True)
class DataCache:
    """One level of the caches that hold data, as the first of some cores has it."""

    level: str  # "L1"
    size_bytes: int
    cores: tuple[int, ...]  # that share it, of those asked about
    count: int  # how many there are for all of those cores


def data_caches(root: Root, cores: Sequence[int]) -> list[DataCache]:
    """From the innermost; empty where the system does not describe them."""
    shared: dict[str, list[tuple[int, ...]]] = {}
    sizes: dict[str, int] = {}
    for core in cores:
        folder = f"{_CPUS}/cpu{core}/cache"
        for name in root.names(folder):
            size = kilobytes(root.text(f"{folder}/{name}/size"))
            number = root.number(f"{folder}/{name}/level")
            if not size or not number or root.text(f"{folder}/{name}/type") == "Instruction":
                continue
            level, sharing = f"L{number}", numbers_listed(root.text(f"{folder}/{name}/shared_cpu_list")) or [core]
            sizes.setdefault(level, size * 1024)
            shared.setdefault(level, []).append(tuple(each for each in sharing if each in cores))
    return [DataCache(level, sizes[level], shared[level][0], len(set(shared[level]))) for level in sorted(sizes)]


_MOST_CLOCKS = 16
_FIRST = "sys/devices/system/cpu/cpu0/cpufreq"
_NO_TURBO = "sys/devices/system/cpu/intel_pstate/no_turbo"
_BOOST = "sys/devices/system/cpu/cpufreq/boost"


def frequency_facts(root: Root) -> dict[str, str]:
    return {
        "governor": ", ".join(governors(root)),
        "frequency driver": root.text(f"{_FIRST}/scaling_driver"),
        "energy preference": root.text(f"{_FIRST}/energy_performance_preference"),
        "turbo": turbo(root),
        "base frequency": _mhz(root.number(f"{_FIRST}/base_frequency")),
        "maximum frequency": _mhz(root.number(f"{_FIRST}/cpuinfo_max_freq")),
        "frequency limit": _limit(root),
    }


def clocks_mhz(root: Root) -> list[float]:
    """Read the clocks of a few cores, evenly spread, since asking one may interrupt it; empty without cpufreq."""
    cores = sorted(int(number) for name in root.names(_CPUS) if (number := name.removeprefix("cpu")).isdecimal())
    files = [file for core in cores if root.exists(file := f"{_CPUS}/cpu{core}/cpufreq/scaling_cur_freq")]
    count = min(len(files), _MOST_CLOCKS)
    khz = [root.number(files[place * len(files) // count]) for place in range(count)]
    return [each / 1e3 for each in khz if each is not None]  # a core may be switched off meanwhile


def governors(root: Root) -> list[str]:
    """Of all cores, each once: one core with another governor is enough to disturb a measurement."""
    policies = [name for name in root.names("sys/devices/system/cpu/cpufreq") if name.startswith("policy")]
    found = {root.text(f"sys/devices/system/cpu/cpufreq/{name}/scaling_governor") for name in policies}
    return sorted(found - {""}) or list(filter(None, [root.text(f"{_FIRST}/scaling_governor")]))


def turbo(root: Root) -> str:
    """``on`` or ``off``; empty where it is not known, as in most virtual machines."""
    no_turbo, boost = root.text(_NO_TURBO), root.text(_BOOST)
    if no_turbo in ("0", "1"):
        return "off" if no_turbo == "1" else "on"
    return {"0": "off", "1": "on"}.get(boost, "")


def turbo_switch(root: Root) -> str:
    """Suggest the command that turns it off on this machine."""
    if root.text(_NO_TURBO):
        return f"echo 1 | sudo tee /{_NO_TURBO}"
    return f"echo 0 | sudo tee /{_BOOST}"


def turbo_gain(root: Root) -> float | None:
    """Divide the highest clock by the base clock; None where either is not known."""
    base, most = root.number(f"{_FIRST}/base_frequency"), root.number(f"{_FIRST}/cpuinfo_max_freq")
    return most / base if base and most and most > base else None


def _limit(root: Root) -> str:
    """Only where it is below what the processor can do."""
    limit, most = root.number(f"{_FIRST}/scaling_max_freq"), root.number(f"{_FIRST}/cpuinfo_max_freq")
    return _mhz(limit) if limit and most and limit < most else ""


def _mhz(khz: int | None) -> str:
    return f"{khz / 1000:g} MHz" if khz else ""

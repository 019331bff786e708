"""What is watched of the machine around its GPUs.

What the sampler does not read: memory of the machine, and how often heat slowed its cores down.
"""

from __future__ import annotations

from fairlap.machine.counters import thermal_events
from fairlap.machine.kernel import memory_bytes
from fairlap.machine.root import Root
from fairlap.watch.metrics import Metric
from fairlap.watch.units import BYTES, CORES, MEGAHERTZ, PER_SECOND, SHARE

_HERTZ_PER_MEGAHERTZ = 1e6

MACHINE_METRICS = (
    Metric(
        "cpu_frequency",
        "mean_mhz",
        "cpu_clock_mean_hertz",
        "Clock of the cores, their mean.",
        MEGAHERTZ,
        "Processor",
        "clock",
        scale=_HERTZ_PER_MEGAHERTZ,
    ),
    Metric(
        "cpu_frequency",
        "lowest_mhz",
        "cpu_clock_lowest_hertz",
        "Clock of the slowest core.",
        MEGAHERTZ,
        "Processor",
        "slowest core",
        scale=_HERTZ_PER_MEGAHERTZ,
    ),
    Metric(
        "cpu_frequency",
        "highest_mhz",
        "cpu_clock_highest_hertz",
        "Clock of the fastest core.",
        MEGAHERTZ,
        "Processor",
        scale=_HERTZ_PER_MEGAHERTZ,
    ),
    Metric(
        "heat",
        "slowdowns",
        "cpu_heat_slowdowns",
        "How often cores were slowed down for heat.",
        PER_SECOND,
        "Processor",
        "slowed by heat",
        counter=True,
    ),
    Metric(
        "steal",
        "stolen_s",
        "cpu_stolen_seconds",
        "Time that the hypervisor gave to others while this machine wanted it, of all cores.",
        CORES,
        "Processor",
        "stolen",
        counter=True,
        essential=True,
    ),
    Metric(
        "memory",
        "used_bytes",
        "memory_used_bytes",
        "Memory of the machine that is not available to new work.",
        BYTES,
        "Memory",
        "used",
        whole="memory_size_bytes",
        essential=True,
    ),
    Metric("memory", "size_bytes", "memory_size_bytes", "Memory that the machine has.", BYTES, "Memory", latest=True),
    *(
        Metric(
            "pressure",
            f"{resource}_{who}_s",
            f"pressure_{who}_seconds",
            f"Time in which {whom} for the resource.",
            SHARE,
            "Pressure",
            row,
            counter=True,
            labels={"resource": resource},
            essential=resource != "io",
        )
        for resource, who, whom, row in (
            ("cpu", "some", "some task waited", "processor"),
            ("memory", "some", "some task waited", "memory"),
            ("memory", "full", "all tasks waited", "memory, all"),
            ("io", "some", "some task waited", "disk"),
            ("io", "full", "all tasks waited", "disk, all"),
        )
    ),
    Metric(
        "control_group",
        "memory_bytes",
        "control_group_memory_bytes",
        "Memory of the control group in which the watch runs, page cache included.",
        BYTES,
        "cgroup",
        "memory",
    ),
    Metric(
        "control_group",
        "memory_peak_bytes",
        "control_group_memory_peak_bytes",
        "Most memory that the control group ever had.",
        BYTES,
        "cgroup",
        latest=True,
    ),
    Metric(
        "control_group",
        "cpu_s",
        "control_group_cpu_seconds",
        "Processor time of the control group.",
        CORES,
        "cgroup",
        "processor",
        counter=True,
    ),
    Metric(
        "control_group",
        "throttled_s",
        "control_group_throttled_seconds",
        "Time for which the control group was held back by its quota.",
        SHARE,
        "cgroup",
        "throttled",
        counter=True,
        essential=True,
    ),
    Metric(
        "control_group",
        "throttled_periods",
        "control_group_throttled_periods",
        "Periods in which the control group used up its quota.",
        PER_SECOND,
        "cgroup",
        counter=True,
    ),
)


NO_MEMORY = "/proc/meminfo does not tell it"
NO_HEAT = "no core counts how often it was slowed down for heat, as in most virtual machines"


def read_machine_files(root: Root) -> dict[tuple[str, str], float | str]:
    """By source and field; a text says why there is no number."""
    memory = memory_bytes(root)
    size, available = memory.get("MemTotal"), memory.get("MemAvailable")
    heat = thermal_events(root)
    return {
        ("memory", "used_bytes"): NO_MEMORY if size is None or available is None else float(size - available),
        ("memory", "size_bytes"): NO_MEMORY if size is None else float(size),
        ("heat", "slowdowns"): NO_HEAT if heat is None else float(heat),
    }

"""The metrics of the machine around its GPUs, and the readers of those that the sampler does not read."""

from __future__ import annotations

from fairlap.machine.counters import thermal_events
from fairlap.machine.kernel import memory_bytes
from fairlap.machine.root import Root
from fairlap.watch.metrics import BYTES, CORES, MEGAHERTZ, PER_SECOND, SHARE, Metric

_HERTZ_PER_MEGAHERTZ = 1e6
_PRESSURE_HELP = {
    "some": "Time in which at least one task waited for the resource.",
    "full": "Time in which all tasks waited for the resource.",
}

MACHINE_METRICS = (
    Metric(
        "cpu_frequency",
        "mean_mhz",
        "cpu_clock_mean_hertz",
        "Mean clock of the cores.",
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
        "thermal",
        "slowdowns",
        "cpu_thermal_slowdowns",
        "Number of times that cores were slowed down by their temperature.",
        PER_SECOND,
        "Processor",
        "slowed thermally",
        counter=True,
    ),
    Metric(
        "steal",
        "stolen_s",
        "cpu_stolen_seconds",
        "Time of all cores that the hypervisor gave to other machines while this one had work.",
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
        "Memory of the machine that is not available to new processes.",
        BYTES,
        "Memory",
        "used",
        whole="memory_size_bytes",
        essential=True,
    ),
    Metric("memory", "size_bytes", "memory_size_bytes", "Size of the machine's memory.", BYTES, "Memory", latest=True),
    *(
        Metric(
            "pressure",
            f"{resource}_{tasks}_s",
            f"pressure_{tasks}_seconds",
            _PRESSURE_HELP[tasks],
            SHARE,
            "Pressure",
            row,
            counter=True,
            labels={"resource": resource},
            essential=resource != "io",
        )
        for resource, tasks, row in (
            ("cpu", "some", "processor"),
            ("memory", "some", "memory"),
            ("memory", "full", "memory, all"),
            ("io", "some", "disk"),
            ("io", "full", "disk, all"),
        )
    ),
    Metric(
        "control_group",
        "memory_bytes",
        "control_group_memory_bytes",
        "Memory of the control group that fairlap watch runs in, including page cache.",
        BYTES,
        "cgroup",
        "memory",
    ),
    Metric(
        "control_group",
        "memory_peak_bytes",
        "control_group_memory_peak_bytes",
        "Peak memory of the control group.",
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
        "Time for which the quota stopped the control group.",
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
        "Number of periods in which the control group used up its quota.",
        PER_SECOND,
        "cgroup",
        counter=True,
    ),
)


NO_MEMORY = "/proc/meminfo does not contain it"
NO_THERMAL = "no core counts thermal slowdowns, as in most virtual machines"


def read_machine_files(root: Root) -> dict[tuple[str, str], float | str]:
    """By source and field; a text is the reason why there is no number."""
    memory = memory_bytes(root)
    size, available = memory.get("MemTotal"), memory.get("MemAvailable")
    thermal = thermal_events(root)
    return {
        ("memory", "used_bytes"): NO_MEMORY if size is None or available is None else float(size - available),
        ("memory", "size_bytes"): NO_MEMORY if size is None else float(size),
        ("thermal", "slowdowns"): NO_THERMAL if thermal is None else float(thermal),
    }

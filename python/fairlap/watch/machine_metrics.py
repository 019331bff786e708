"""The metrics of the machine around its GPUs, and the readers of those that the sampler does not read."""

from __future__ import annotations

import dataclasses
import os
from functools import partial

from fairlap.machine.control_group import group_usage
from fairlap.machine.hardware.counters import pressure_us, steal_ticks, thermal_events
from fairlap.machine.hardware.kernel import memory_bytes
from fairlap.machine.hardware.processor import clocks_mhz
from fairlap.machine.root import Root
from fairlap.watch.metrics import BYTES, CORES, MEGAHERTZ, PER_SECOND, SHARE, Metric

_PRESSURE_HELP = {
    "some": "Time in which at least one task waited for the resource.",
    "full": "Time in which all tasks waited for the resource.",
}

_clock = partial(Metric, "cpu_frequency", unit=MEGAHERTZ, group="Processor")
_memory = partial(Metric, "memory", unit=BYTES, group="Memory")
_group = partial(Metric, "control_group", group="cgroup")

MACHINE_METRICS = (
    _clock("mean_mhz", "cpu_clock_mean_hertz", "Mean clock of the cores.", row="clock"),
    _clock("lowest_mhz", "cpu_clock_lowest_hertz", "Clock of the slowest core.", row="slowest core"),
    _clock("highest_mhz", "cpu_clock_highest_hertz", "Clock of the fastest core."),
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
    _memory(
        "used_bytes",
        "memory_used_bytes",
        "Memory of the machine that is not available to new processes.",
        row="used",
        whole="memory_size_bytes",
        essential=True,
    ),
    _memory("size_bytes", "memory_size_bytes", "Size of the machine's memory.", latest=True),
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
    _group(
        "memory_bytes",
        "control_group_memory_bytes",
        "Memory of the control group that fairlap watch runs in, including page cache.",
        BYTES,
        row="memory",
    ),
    _group(
        "memory_peak_bytes", "control_group_memory_peak_bytes", "Peak memory of the control group.", BYTES, latest=True
    ),
    _group(
        "cpu_s",
        "control_group_cpu_seconds",
        "Processor time of the control group.",
        CORES,
        row="processor",
        counter=True,
    ),
    _group(
        "throttled_s",
        "control_group_throttled_seconds",
        "Time for which the quota stopped the control group.",
        SHARE,
        row="throttled",
        counter=True,
        essential=True,
    ),
    _group(
        "throttled_periods",
        "control_group_throttled_periods",
        "Number of periods in which the control group used up its quota.",
        PER_SECOND,
        counter=True,
    ),
)


NO_MEMORY = "/proc/meminfo does not contain it"
NO_THERMAL = "no core counts thermal slowdowns, as in most virtual machines"
NO_CLOCK = (
    "no core has cpufreq under /sys/devices/system/cpu: the kernel does not report the clock here, as in most virtual "
    "machines"
)
NO_STEAL = "/proc/stat has no column for stolen time"
NO_PRESSURE = "/proc/pressure does not contain it: it is reported by kernels built with PSI and started with psi=1"
NO_GROUP = "no control group of this process under /sys/fs/cgroup reports it"


def read_machine_files(root: Root) -> dict[tuple[str, str], float | str]:
    """By source and field; a text is the reason why there is no number."""
    memory = memory_bytes(root)
    size, available = memory.get("MemTotal"), memory.get("MemAvailable")
    used = None if size is None or available is None else size - available
    clocks = clocks_mhz(root)
    stolen = steal_ticks(root)
    usage = dataclasses.asdict(group_usage(root)).items()
    pressure = {
        (resource, tasks): pressure_us(root, resource, tasks)
        for resource in ("cpu", "memory", "io")
        for tasks in ("some", "full")
    }
    return {
        **{("control_group", name): _or_why(value, NO_GROUP) for name, value in usage},
        ("cpu_frequency", "mean_mhz"): sum(clocks) / len(clocks) if clocks else NO_CLOCK,
        ("cpu_frequency", "lowest_mhz"): min(clocks, default=NO_CLOCK),
        ("cpu_frequency", "highest_mhz"): max(clocks, default=NO_CLOCK),
        ("steal", "stolen_s"): NO_STEAL if stolen is None else stolen / os.sysconf("SC_CLK_TCK"),
        **{
            ("pressure", f"{resource}_{tasks}_s"): NO_PRESSURE if waited is None else waited / 1e6
            for (resource, tasks), waited in pressure.items()
        },
        ("memory", "used_bytes"): _or_why(used, NO_MEMORY),
        ("memory", "size_bytes"): _or_why(size, NO_MEMORY),
        ("thermal", "slowdowns"): _or_why(thermal_events(root), NO_THERMAL),
    }


def _or_why(number: float | None, why: str) -> float | str:
    return why if number is None else float(number)

"""Checks of what else uses the cores: other processes, the host, the control group, hardware threads."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.machine.control_group import group_limits, throttled
from fairlap.machine.doctor.finding import Examined, Finding, Severity
from fairlap.machine.hardware.counters import cpu_ticks, steal_share
from fairlap.machine.hardware.processor import allowed, online, siblings

_WARNING_CORES = 0.1
_BAD_CORES = 0.5
_BAD_SHARE_OF_CORES = 0.1
_NOTED_WAITING = 0.01
_TOO_MUCH_STEAL = 0.02  # the share above which a race leaves a block out
_FAR_TOO_MUCH_STEAL = 0.10
_LITTLE_MEMORY_BYTES = 2 * 1024**3
_SMT_OFF = "echo off | sudo tee /sys/devices/system/cpu/smt/control"

# Measured; docs/explanation/conditions.md has the tables and how they were taken.
_SHARING_EFFECT = (
    "threads that synchronise after every operator wait for the slowest; with another busy process on two cores "
    "PyTorch's convnet took 30 times as long, JAX's 2 times"
)


def check_neighbours(seen: Examined) -> list[Finding]:
    busy, waited = seen.observed.others_busy_cores, seen.observed.waited_share or 0.0
    cores = len(_usable_cores(seen)) or 1
    waiting = f"; tasks waited for a core {quantity_text.share(waited)} of the time" if waited >= _NOTED_WAITING else ""
    found = f"other processes keep {busy:.2f} of {quantity_text.count(cores, 'core')} busy{waiting}"
    if busy < _WARNING_CORES:
        return [Finding("neighbours", "good", found)]
    severity: Severity = "bad" if busy >= _BAD_CORES and busy >= _BAD_SHARE_OF_CORES * cores else "warning"
    return [
        Finding(
            "neighbours",
            severity,
            f"{found}: {_listed(seen)}",
            _SHARING_EFFECT,
            "end or pause them (kill -STOP PID, later kill -CONT PID), or wait; OMP_WAIT_POLICY=passive keeps OpenMP's "
            "threads from spinning meanwhile, and fewer --threads than cores leave room",
        )
    ]


def _listed(seen: Examined) -> str:
    listed = [f"{each.name} ({each.pid}, {each.cores:.2f})" for each in seen.observed.busiest]
    return ", ".join(listed) if listed else "processes that are not visible from here"


def check_steal(seen: Examined) -> list[Finding]:
    now, ever = seen.observed.steal_share, steal_share(cpu_ticks(seen.root))
    if not seen.is_virtual or now is None:
        return []
    so_far = f", {quantity_text.share(ever)} since the start" if ever is not None else ""
    if max(now, ever or 0.0) <= _TOO_MUCH_STEAL:
        return [Finding("stolen_time", "good", f"{quantity_text.share(now)} now{so_far}")]
    return [
        Finding(
            "stolen_time",
            "bad" if now > _FAR_TOO_MUCH_STEAL else "warning",
            f"the host takes {quantity_text.share(now)} of the time now{so_far}",
            f"a race leaves out blocks with more than {quantity_text.share(_TOO_MUCH_STEAL)}, so the interval is wider",
            "measure on a dedicated host, on another size of machine, or at another time",
        )
    ]


def check_quota(seen: Examined) -> list[Finding]:
    limits = group_limits(seen.root)
    cores = len(_usable_cores(seen))
    found: list[Finding] = []
    if limits.cpus is not None and cores and limits.cpus < cores:
        found.append(
            Finding(
                "quota",
                "bad",
                f"the control group allows {limits.cpus:g} cores, and {cores} are visible",
                "frameworks start a thread per visible core, and all of them are stopped until the period ends",
                f"fairlap compare --threads {max(int(limits.cpus), 1)}, or bind cores instead of setting a quota "
                "(docker run --cpuset-cpus)",
            )
        )
    stopped = throttled(seen.root)
    if stopped is not None and stopped.throttled_periods:
        share = stopped.throttled_periods / max(stopped.periods, 1)
        found.append(
            Finding(
                "throttling",
                "warning",
                f"the control group was stopped in {stopped.throttled_periods} of {stopped.periods} periods "
                f"({quantity_text.share(share)}) so far",
                "a stop lasts until the period ends, usually 100 ms; a race leaves out every block that has one",
                "raise the quota (docker run --cpus, Kubernetes limits.cpu) above the number of threads",
            )
        )
    if limits.memory_bytes is not None and limits.memory_bytes < _LITTLE_MEMORY_BYTES:
        found.append(
            Finding(
                "memory_limit",
                "warning",
                f"the control group may use {quantity_text.size(limits.memory_bytes)}",
                "the kernel ends a framework that needs more, or makes it read its files again and again",
                "raise the limit (docker run --memory, Kubernetes limits.memory)",
            )
        )
    allowance = f"{limits.cpus:g} cores allowed" if limits.cpus is not None else "no limit on cores"
    return found or [Finding("control_group", "good", allowance)]


def check_hardware_threads(seen: Examined) -> list[Finding]:
    usable = _usable_cores(seen)
    if not usable:
        return []
    groups = {frozenset(siblings(seen.root, cpu)) for cpu in usable}
    shared = [group for group in groups if len(group) > 1]
    if not shared:
        if seen.is_virtual:
            found = "none share a core here; the host may still place two of them on one core"
            return [Finding("hardware_threads", "note", found)]
        return [Finding("hardware_threads", "good", "each has its own core")]
    if not any(len(group & set(usable)) > 1 for group in shared):
        return [
            Finding(
                "hardware_threads",
                "note",
                f"{quantity_text.count(len(shared), 'core')} shared with hardware threads that fairlap may not use",
                "work on those threads slows these cores down without being visible",
                f"keep them idle, or: {_SMT_OFF}",
            )
        ]
    one_per_core = ",".join(map(str, sorted(min(group) for group in groups if group)))
    return [
        Finding(
            "hardware_threads",
            "warning",
            f"{len(usable)} share {len(groups)} cores",
            "two threads on one core slow each other down, so a result depends on where the scheduler places them",
            f"taskset -c {one_per_core} fairlap compare ..., or: {_SMT_OFF}",
        )
    ]


def _usable_cores(seen: Examined) -> list[int]:
    return allowed(seen.root) or online(seen.root)

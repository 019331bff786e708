"""What the control group lets this process have.

Who else runs here now.

Time that the host of a virtual machine gave to others.

Hardware threads that share a core.
"""

from __future__ import annotations

from fairlap.machine.control_group import group_limits, throttled
from fairlap.machine.counters import cpu_ticks, steal_share
from fairlap.machine.doctor.finding import Examined, Finding, Severity
from fairlap.machine.processor import allowed, online, siblings
from fairlap.machine.root import size_text

_WORTH_A_WARNING_CORES = 0.1
_BAD_CORES = 0.5
_BAD_SHARE_OF_CORES = 0.1


def check_neighbours(seen: Examined) -> list[Finding]:
    busy = seen.observed.others_busy_cores
    cores = len(allowed(seen.root) or online(seen.root)) or 1
    waited = seen.observed.waited_share
    waiting = f"; somebody waited for a core {waited:.0%} of the time" if waited is not None and waited >= 0.01 else ""
    if busy < _WORTH_A_WARNING_CORES:
        return [Finding("neighbours", "good", f"others keep {busy:.2f} of {cores} cores busy{waiting}")]
    severity: Severity = "bad" if busy >= _BAD_CORES and busy >= _BAD_SHARE_OF_CORES * cores else "warning"
    return [
        Finding(
            "neighbours",
            severity,
            f"others keep {busy:.2f} of {cores} cores busy{waiting}: {_named(seen)}",
            EFFECT,
            "end or pause them (kill -STOP PID, later kill -CONT PID), or wait; OMP_WAIT_POLICY=passive keeps OpenMP's "
            "threads from spinning meanwhile, and fewer --threads than cores leave room",
        )
    ]


# Measured; docs/explanation/conditions.md has the tables and how they were taken.
EFFECT = (
    "threads that wait for each other at every operator wait for the slowest: beside others on two cores PyTorch's "
    "convnet took 30 times as long, JAX's 2 times"
)


def _named(seen: Examined) -> str:
    told = [f"{each.name} ({each.pid}, {each.cores:.2f})" for each in seen.observed.busiest]
    return ", ".join(told) if told else "processes that cannot be seen from here"


_TOO_MUCH = 0.02  # the share above which a race leaves a block out
_FAR_TOO_MUCH = 0.10


def check_steal(seen: Examined) -> list[Finding]:
    now, ever = seen.observed.steal_share, steal_share(cpu_ticks(seen.root))
    if not seen.is_virtual or now is None:
        return []
    so_far = f", {ever:.1%} since it started" if ever is not None else ""
    if max(now, ever or 0.0) <= _TOO_MUCH:
        return [Finding("stolen time", "good", f"{now:.1%} now{so_far}")]
    return [
        Finding(
            "stolen time",
            "bad" if now > _FAR_TOO_MUCH else "warning",
            f"the host keeps {now:.1%} of the time now{so_far}",
            f"a race leaves out blocks with more than {_TOO_MUCH:.0%}; fewer are left, and the interval is wider",
            "measure on a host of your own, on another size of machine, or at another time",
        )
    ]


_LITTLE_MEMORY_BYTES = 2 * 1024**3


def check_quota(seen: Examined) -> list[Finding]:
    limits = group_limits(seen.root)
    cores = len(allowed(seen.root) or online(seen.root))
    found: list[Finding] = []
    if limits.cpus is not None and cores and limits.cpus < cores:
        found.append(_too_little(limits.cpus, cores))
    counted = throttled(seen.root)
    if counted is not None and counted.throttled_periods:
        share = counted.throttled_periods / max(counted.periods, 1)
        found.append(
            Finding(
                "throttling",
                "warning",
                f"the control group was stopped in {counted.throttled_periods} of {counted.periods} periods "
                f"({share:.1%}) so far",
                "a stop lasts to the end of a period, most often 100 ms; a race leaves out every block that has one",
                "raise the quota (docker run --cpus, Kubernetes limits.cpu) above the number of threads",
            )
        )
    if limits.memory_bytes is not None and limits.memory_bytes < _LITTLE_MEMORY_BYTES:
        found.append(
            Finding(
                "memory limit",
                "warning",
                f"the control group may have {size_text(limits.memory_bytes)}",
                "a framework that needs more is ended by the kernel, or reads its files again and again",
                "raise the limit (docker run --memory, Kubernetes limits.memory)",
            )
        )
    if not found:
        bound = f"{limits.cpus:g} cores allowed" if limits.cpus is not None else "no limit on cores"
        found.append(Finding("control group", "good", bound))
    return found


def _too_little(cpus: float, cores: int) -> Finding:
    whole = max(int(cpus), 1)
    return Finding(
        "quota",
        "bad",
        f"the control group allows {cpus:g} cores, and {cores} can be seen",
        "frameworks start a thread for each core they see and are then stopped together until the period ends",
        f"fairlap compare --threads {whole}, or bind cores in place of the quota (docker run --cpuset-cpus)",
    )


def check_hardware_threads(seen: Examined) -> list[Finding]:
    may_use = allowed(seen.root) or online(seen.root)
    if not may_use:
        return []
    groups = {frozenset(siblings(seen.root, cpu)) for cpu in may_use}
    shared = [group for group in groups if len(group) > 1]
    if not shared:
        if seen.is_virtual:
            told = "none to be seen; the host may still give two of these to one core"
            return [Finding("hardware threads", "note", told)]
        return [Finding("hardware threads", "good", "every one has a core of its own")]
    cores = sorted(min(group) for group in groups if group)
    listed = ",".join(map(str, cores))
    both = [group for group in shared if len(group & set(may_use)) > 1]
    if not both:
        return [
            Finding(
                "hardware threads",
                "note",
                f"{len(shared)} cores are shared with hardware threads that fairlap may not use",
                "whatever runs on those takes from the same cores unseen",
                "keep them idle, or: echo off | sudo tee /sys/devices/system/cpu/smt/control",
            )
        ]
    return [
        Finding(
            "hardware threads",
            "warning",
            f"{len(may_use)} share {len(groups)} cores",
            "two threads on one core slow each other down, so a figure depends on where the scheduler put them",
            f"taskset -c {listed} fairlap compare ..., or: echo off | sudo tee /sys/devices/system/cpu/smt/control",
        )
    ]

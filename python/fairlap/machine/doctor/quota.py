"""What the control group lets this process have."""

from __future__ import annotations

from fairlap.machine.control_group import group_limits, throttled
from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.processor import allowed, online
from fairlap.machine.root import size_text

_LITTLE_MEMORY_BYTES = 2 * 1024**3


def judge(seen: Examined) -> list[Finding]:
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

"""Who else runs here now."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding, Severity
from fairlap.machine.processor import allowed, online

_WORTH_A_WARNING_CORES = 0.1
_BAD_CORES = 0.5
_BAD_SHARE_OF_CORES = 0.1


def judge(seen: Examined) -> list[Finding]:
    busy = seen.watched.others_busy_cores
    cores = len(allowed(seen.root) or online(seen.root)) or 1
    waited = seen.watched.waited_share
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
    told = [f"{each.name} ({each.pid}, {each.cores:.2f})" for each in seen.watched.busiest]
    return ", ".join(told) if told else "processes that cannot be seen from here"

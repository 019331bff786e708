"""Hardware threads that share a core."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.processor import allowed, online, siblings


def judge(seen: Examined) -> list[Finding]:
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

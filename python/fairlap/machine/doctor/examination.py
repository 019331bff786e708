"""Reads everything once, watches for a second, and asks every judge."""

from __future__ import annotations

from collections.abc import Callable

from fairlap.machine.doctor import (
    address_layout,
    clock,
    governor,
    gpus,
    hardware_threads,
    heat,
    huge_pages,
    memory_pressure,
    neighbours,
    quota,
    steal,
    swap,
    turbo,
)
from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import SEVERITIES, Finding
from fairlap.machine.doctor.watching import watch
from fairlap.machine.facts import machine_facts
from fairlap.machine.root import THIS_MACHINE

Judge = Callable[[Examined], list[Finding]]

JUDGES: tuple[Judge, ...] = (
    neighbours.judge,
    steal.judge,
    quota.judge,
    governor.judge,
    turbo.judge,
    hardware_threads.judge,
    heat.judge,
    memory_pressure.judge,
    swap.judge,
    huge_pages.judge,
    address_layout.judge,
    clock.judge,
    gpus.judge,
)


def examine_this_machine(seconds: float = 1.0) -> Examined:
    from fairlap.engine.clocks import cpu_floor
    from fairlap.errors import NotAvailable
    from fairlap.machine.nvml import gpus as all_gpus

    watched = watch(seconds=seconds)  # first, so that it does not see our own work
    told = all_gpus()
    facts = machine_facts(told_by_gpus=told)
    try:
        return Examined(THIS_MACHINE, facts, watched, told, cpu_floor())
    except NotAvailable as error:
        return Examined(THIS_MACHINE, facts, watched, told, clock_absent=str(error))


def findings_of(seen: Examined) -> list[Finding]:
    """The worst first."""
    found = [finding for judge in JUDGES for finding in judge(seen)]
    return sorted(found, key=lambda finding: -SEVERITIES.index(finding.severity))

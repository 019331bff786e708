"""Read everything once, observe for a second, and run every check."""

from __future__ import annotations

from collections.abc import Callable

from fairlap.machine.doctor.clock_speed import check_clock, check_governor, check_thermal, check_turbo
from fairlap.machine.doctor.finding import SEVERITIES, Examined, Finding
from fairlap.machine.doctor.gpus import check_gpus
from fairlap.machine.doctor.memory_settings import (
    check_address_layout,
    check_huge_pages,
    check_memory_pressure,
    check_swap,
)
from fairlap.machine.doctor.observation import observe
from fairlap.machine.doctor.shared_cores import check_hardware_threads, check_neighbours, check_quota, check_steal
from fairlap.machine.facts import machine_facts
from fairlap.machine.programs.sandbox import has_seccomp, landlock_version
from fairlap.machine.race_lock.holder import races_running
from fairlap.machine.root import THIS_MACHINE

Check = Callable[[Examined], list[Finding]]

_WHOLE_LANDLOCK = 3  # the first version that refuses to truncate files too


def check_sandbox(seen: Examined) -> list[Finding]:
    """Look at what this kernel confines processes with that read models of others."""
    if not seen.root.is_this_machine:
        return []
    version, filters = landlock_version(), has_seccomp()
    lacking = []
    if version == 0:
        lacking.append("no Landlock, so it reaches the files of this user")
    elif version < _WHOLE_LANDLOCK:
        lacking.append(f"Landlock {version}, so it can truncate files of this user")
    if not filters:
        lacking.append("no seccomp filters, so it reaches the network and starts programs")
    if not lacking:
        return [Finding("sandbox", "good", f"Landlock {version} and seccomp confine what reads a model of others")]
    return [
        Finding(
            "sandbox",
            "note",
            "; ".join(lacking),
            "a model that is opened without --trust is kept from running code by the checks of its kind alone",
            "Linux 6.2 or later with landlock in /sys/kernel/security/lsm, or open such models in a container",
        )
    ]


def check_races(seen: Examined) -> list[Finding]:
    """Look at who holds the cores that another race would have to wait for."""
    if not seen.root.is_this_machine:
        return []
    if not (running := races_running()):
        return [Finding("race", "good", "no race is running")]
    return [
        Finding(
            "race",
            "note",
            f"a race is running: {race}",
            "another race on these cores waits for it, and one on others shares caches and memory bandwidth",
            "wait until it has ended",
        )
        for race in running
    ]


CHECKS: tuple[Check, ...] = (
    check_races,
    check_neighbours,
    check_steal,
    check_quota,
    check_governor,
    check_turbo,
    check_hardware_threads,
    check_thermal,
    check_memory_pressure,
    check_swap,
    check_huge_pages,
    check_address_layout,
    check_clock,
    check_gpus,
    check_sandbox,
)


def examine_this_machine(seconds: float = 1.0) -> Examined:
    from fairlap.engine.floors import cpu_floor
    from fairlap.errors import NotAvailable
    from fairlap.machine.hardware.gpu import gpus as all_gpus

    observed = observe(seconds=seconds)  # first, so that it does not see our own work
    gpus = all_gpus()
    facts = machine_facts(gpus_found=gpus)
    try:
        return Examined(THIS_MACHINE, facts, observed, gpus, cpu_floor())
    except NotAvailable as error:
        return Examined(THIS_MACHINE, facts, observed, gpus, clock_absent=str(error))


def findings_of(seen: Examined) -> list[Finding]:
    """Run all checks and sort their findings, the most severe first."""
    found = [finding for check in CHECKS for finding in check(seen)]
    return sorted(found, key=lambda finding: -SEVERITIES.index(finding.severity))

"""What a machine of a cluster says about itself, by which alike machines are known."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlap.machine.differences import is_momentary
from fairlap.machine.facts import machine_facts
from fairlap.results.rows import fingerprint
from fairlap.version import __version__

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Machine(msgspec.Struct, frozen=True):
    """``host`` is the same for all containers of one machine, which therefore take turns."""

    name: str
    host: str
    cores: tuple[int, ...]
    facts: dict[str, str]
    fairlap: str
    python: str
    niceness: int = 0  # of processes that a block starts

    @property
    def kind(self) -> str:
        """Two machines with the same one are alike in hardware, system, packages, variables, cores and priority."""
        lasting = {name: value for name, value in self.facts.items() if not is_momentary(name)}
        return fingerprint([lasting, self.cores, self.niceness])


def machine_here(environment: Mapping[str, str]) -> Machine:
    name = socket.gethostname()
    try:
        host = _BOOT.read_text().strip()
    except OSError:
        host = name
    cores = tuple(sorted(os.sched_getaffinity(0)))
    return Machine(name, host, cores, machine_facts(environment=environment), __version__, platform.python_version())


def why_not_usable(machine: Machine) -> str:
    """Compare its fairlap with this process's, and its Python but for the last number: they must be the same."""
    ours = {"fairlap": __version__, "Python": _minor(platform.python_version())}
    theirs = {"fairlap": machine.fairlap, "Python": _minor(machine.python)}
    return " and ".join(
        f"it has {name} {theirs[name]}, and this process {ours[name]}" for name in ours if ours[name] != theirs[name]
    )


def _minor(version: str) -> str:
    return version.rpartition(".")[0]

"""The roofs of this machine: the most operations and bytes per second that it reaches, measured once and kept."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from fairlap.engine.roofs import Team, Trials, arithmetic_trials, instructions_for, triad_trials
from fairlap.errors import InvalidRequest
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.machine.files.atomic_files import write_atomically
from fairlap.machine.files.private_files import make_private_folder
from fairlap.machine.files.user_folders import kept_copies, work_cache
from fairlap.machine.hardware import processor
from fairlap.machine.hardware.gpu_links import PcieLink
from fairlap.machine.hardware.instructions import instructions_by_type
from fairlap.machine.hardware.processor import DataCache
from fairlap.machine.hardware.virtualisation import virtualisation
from fairlap.machine.root import THIS_MACHINE

MEMORY = "memory"
LEVELS = ("L1", "L2", "L3", MEMORY)
NUMBER_TYPES = ("fp32", "fp64", "fp16", "bf16", "int8")

_NS_PER_S = 1e9
_KERNELS = 3  # raised when kernels change, so that kept figures are measured again
_SECONDS = 0.6  # for each roof
_TURNS = 5  # the roofs take turns, so that a disturbance of a second does not meet all trials of one
_TIMES_THE_CACHES = 4  # STREAM's rule
_LEAST_TIMES_THE_CACHES = 2
_LEAST_MEMORY_BYTES = 256 * 2**20
_SHARE_OF_MEMORY = 0.25


class Roof(msgspec.Struct, frozen=True):
    """One measured limit, in operations or bytes per second, with its 95 % interval."""

    value: float
    low: float
    high: float


class Link(msgspec.Struct, frozen=True):
    """How fast copies go between the memory of a device and another, measured."""

    bytes_per_s: Roof  # of both directions together where copies went both ways at once
    by: str  # PCIe, NVLink, peer access or host memory
    peer: str = ""  # the name of the other device


class Roofs(msgspec.Struct, frozen=True):
    """What this machine reaches with so many threads at once, or what one of its devices reaches."""

    threads: int | None  # None of a device
    operations_per_s: dict[str, Roof]  # by number type; a multiply-add counts as 2
    bytes_per_s: dict[str, Roof]  # by level: "L1", "L2", "L3", "memory"; a device's memory is its own
    cache_bytes: dict[str, int]  # sizes of the levels
    instructions: dict[str, str]  # which instructions each number type used
    measured_at: str  # UTC, ISO 8601
    triad_instructions: dict[str, str] = {}  # which instructions and stores each level used
    processor_has: dict[str, tuple[str, ...]] = {}  # by number type: the instructions for it, measured or not
    absent: dict[str, str] = {}  # why a number type or level that others have is not there
    device: str = "cpu"
    device_name: str = ""  # as the driver has it; empty for a CPU
    links: dict[str, Link] = {}  # of a device, by the way: those of device_links.py, or "to 0000:c1:00.0"
    pcie: PcieLink | None = None  # as it was while copies were measured
    with_fewer_threads: tuple[Roofs, ...] = ()  # in a run whose works have several numbers of threads

    def of_threads(self, threads: int) -> Roofs | None:
        """Of this machine with so many, where they are known; a device has one set for all."""
        if self.threads in (None, threads):
            return self
        return next((each for each in self.with_fewer_threads if each.threads == threads), None)

    def ridge(self, number_type: str = "fp32", level: str = MEMORY) -> float | None:
        """Operations per byte at which arithmetic takes over from memory as the limit; None without either roof."""
        if number_type not in self.operations_per_s or level not in self.bytes_per_s:
            return None
        return self.operations_per_s[number_type].value / self.bytes_per_s[level].value

    def time_of_bytes(self, moved_bytes: float, working_set_bytes: float, call_ns: float) -> tuple[str, float]:
        """Compute the time in nanoseconds by the smallest level that holds the working set, and name the level.

        A call that is quicker than this level allows has found its bytes in a smaller one: caches of several cores hold
        more than one, and not all of the set need be read again.
        """
        levels = [level for level in LEVELS if level in self.bytes_per_s]
        holding = [level for level in levels if self.cache_bytes.get(level, float("inf")) >= working_set_bytes]
        level = holding[0] if holding else levels[-1]
        found = level, moved_bytes / self.bytes_per_s[level].value * _NS_PER_S
        for smaller in reversed(levels[: levels.index(level)]):
            if found[1] <= call_ns:
                break
            found = smaller, moved_bytes / self.bytes_per_s[smaller].value * _NS_PER_S
        return found


def usable_cores() -> list[int]:
    """List the cores that this process may use."""
    return processor.allowed(THIS_MACHINE) or list(range(os.cpu_count() or 1))


def roofs_of(threads: int, *, again: bool = False) -> Roofs:
    """Measure them, which takes some seconds, or read what was measured before on this machine."""
    if not again and (kept := kept_roofs(threads)) is not None:
        return kept
    roofs = measured(threads, _cores_for(threads))
    keep(_cache_file(threads), roofs)
    return roofs


def kept_roofs(threads: int) -> Roofs | None:
    """Read what was measured before on this machine; None if nothing was."""
    _cores_for(threads)
    return read_kept(_cache_file(threads))


def _cores_for(threads: int) -> list[int]:
    cores = usable_cores()
    if 1 <= threads <= len(cores):
        return cores
    raise InvalidRequest(
        f"threads must be between 1 and {len(cores)}, as many as this process has cores (got {threads})"
    )


def measured(threads: int, cores: list[int], seconds: float = _SECONDS) -> Roofs:
    """Measure each roof for ``seconds``.

    Threads stay on their cores only if there is one for every core: fewer go where no other program runs.
    """
    team = Team(threads, tuple(cores) if threads == len(cores) else ())
    caches = processor.data_caches(THIS_MACHINE, cores)
    flags = processor.flags(THIS_MACHINE)
    absent = _absent_number_types(flags)
    arithmetic = {name: arithmetic_trials(name, team) for name in NUMBER_TYPES if name not in absent}
    triads: dict[str, Trials] = {}
    for level, size in (cache_working_sets(caches, threads, len(cores)) | _memory_working_set(caches, threads)).items():
        if isinstance(size, str):
            absent[level] = size
        else:
            triads[level] = triad_trials(size, team, in_caches=level != MEMORY)
    for _ in range(_TURNS):
        for trials in (*arithmetic.values(), *triads.values()):
            trials.take(seconds / _TURNS)
    return Roofs(
        threads=threads,
        operations_per_s={name: roof_in(trials) for name, trials in arithmetic.items()},
        bytes_per_s={level: roof_in(trials) for level, trials in triads.items()},
        cache_bytes={cache.level: cache.size_bytes for cache in caches},
        instructions={name: trials.instructions for name, trials in arithmetic.items()},
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        triad_instructions={level: trials.instructions for level, trials in triads.items()},
        processor_has=instructions_by_type(flags),
        absent=absent,
    )


def _absent_number_types(flags: frozenset[str]) -> dict[str, str]:
    """Leave out a roof without the fastest unit that the processor has, which would not be a roof."""
    absent = {}
    for name in NUMBER_TYPES:
        measured = instructions_for(name)
        if f"amx_{name}" in flags and f"amx_{name}" not in measured:
            absent[name] = "the processor has AMX for it, which is not measured, or which the system does not give"
        elif not measured:
            has = ", ".join(instructions_by_type(flags).get(name, ()))
            absent[name] = f"no instructions of the processor for it are measured{has and f', such as {has}'}"
    return absent


def cache_working_sets(caches: list[DataCache], threads: int, cores: int) -> dict[str, int | str]:
    """Choose the bytes of each thread's arrays that are in one level and not in the one inside it, or why none are."""
    found: dict[str, int | str] = {}
    inner = 0.0
    for cache in caches:
        share = cache.size_bytes / max(1, math.ceil(threads * len(cache.cores) / cores))
        size = share / 2 if not inner else min(4 * inner, 0.75 * share)
        if size < 1.5 * inner:
            found[cache.level] = "a thread's share of it is not larger than the level inside it"
        else:
            found[cache.level] = int(size)
        inner = max(inner, share)
    return found


def _memory_working_set(caches: list[DataCache], threads: int) -> dict[str, int | str]:
    last_bytes = caches[-1].size_bytes * min(threads, caches[-1].count) if caches else 0
    available = available_memory_bytes()
    wanted = max(_TIMES_THE_CACHES * last_bytes, _LEAST_MEMORY_BYTES)
    allowed = wanted if available is None else int(_SHARE_OF_MEMORY * available)
    if allowed < max(_LEAST_TIMES_THE_CACHES * last_bytes, _LEAST_MEMORY_BYTES // 2):
        return {MEMORY: f"arrays larger than the caches need {wanted / 2**20:,.0f} MiB, a quarter of what is free"}
    return {MEMORY: min(wanted, allowed) // threads}


def roof_in(trials: Trials) -> Roof:
    estimate = trials.roof()
    return Roof(estimate.value, estimate.low, estimate.high)


def _cache_file(threads: int) -> Path:
    """One for each machine, as far as its processor, its clocks and the cores that may be used describe it."""
    facts = processor.processor_facts(THIS_MACHINE) | processor.frequency_facts(THIS_MACHINE)
    facts |= {
        "cores used": str(usable_cores()),
        "kernels": str(_KERNELS),
        "virtualisation": virtualisation(THIS_MACHINE),
    }
    return file_for(facts, str(threads))


def file_for(facts: Mapping[str, str], name: str) -> Path:
    """Where roofs of what these facts describe are kept."""
    fingerprint = hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:16]
    return work_cache() / "roofs" / f"{fingerprint}-{name}.json"


def read_kept(path: Path) -> Roofs | None:
    for copy in kept_copies(path):
        with suppress(OSError, *NOT_THE_DOCUMENT):  # not measured yet, or kept by another version
            return msgspec.json.decode(copy.read_bytes(), type=Roofs)
    return None


def keep(path: Path, roofs: Roofs) -> None:
    try:
        make_private_folder(path.parent)
        write_atomically(path, msgspec.json.encode(roofs), private=True)
    except OSError:
        return  # a cache that cannot be written costs the next command some seconds

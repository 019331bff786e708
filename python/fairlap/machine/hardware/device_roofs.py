"""The roofs of a GPU: the most operations and bytes per second that it and its links reach, measured once and kept.

A separate process measures, so that a race finds the device as it was: nothing of it started, and all its memory free.
Kernels that have never run on such a device are tried in further processes before, one for each number type, because
an illegal instruction or address would break the context, and with it the other roofs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from fairlap.engine.cuda.roofs import DeviceUnderTrial, device_facts, is_unproven
from fairlap.engine.roofs import Trials
from fairlap.errors import FairlapError, NotAvailable, last_line, reason_of
from fairlap.machine.hardware.cuda_devices import board_of
from fairlap.machine.hardware.device_links import BETWEEN, host_links, links_between, other_devices, trained_pcie
from fairlap.machine.hardware.gpu import gpus
from fairlap.machine.hardware.roofs import MEMORY, Link, Roofs, file_for, keep, read_kept, roof_in

if TYPE_CHECKING:
    from fairlap.engine._native import DeviceFacts

Measured = TypeVar("Measured")

NUMBER_TYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "fp64")
CACHE = "L2"

_KERNELS = 4  # raised when kernels change, so that kept figures are measured again
_WITH_UNPROVEN = ".1"  # raised when those change that only devices with unproven kernels have
_SECONDS = 0.6  # for each roof
_TURNS = 5  # the roofs take turns, so that a change of the clock does not meet all trials of one
_SHARE_OF_CACHE = 0.25  # some devices have it in halves, and keep copies of the other half
_TIMES_THE_CACHE = 16  # what is left of it in the cache from the pass before is no more than a sixteenth
_LEAST_TIMES_THE_CACHE = 4
_LEAST_MEMORY_BYTES = 512 * 2**20
_SHARE_OF_MEMORY = 0.25
_LONGEST_S = 180.0
_LONGEST_TRIAL_S = 40.0  # loading, checking and a short trial take seconds; the engine itself gives up after 30
_PEERS = "--peers"
_TRIAL_OF = "--trial-of"


def roofs_of_device(device: str, *, again: bool = False) -> Roofs:
    """Measure them, which takes some seconds, or read what was measured before on such a device."""
    path = _file_of(device)
    if not again and (kept := read_kept(path)) is not None:
        return msgspec.structs.replace(kept, device=device)
    roofs = _measured_apart(device, Roofs)
    keep(path, roofs)
    return roofs


def roofs_with_peers(device: str, *, again: bool = False) -> Roofs:
    """Also measure copies between the device and each other one, on which nothing else should run meanwhile."""
    roofs = roofs_of_device(device, again=again)
    if not peers_to_measure(device, roofs):
        return roofs
    links, absent = _measured_apart(device, tuple[dict[str, Link], dict[str, str]], _PEERS)
    roofs = msgspec.structs.replace(roofs, links=roofs.links | links, absent=roofs.absent | absent)
    keep(_file_of(device), roofs)
    return roofs


def peers_to_measure(device: str, roofs: Roofs | None) -> list[int]:
    """Return the numbers of the other devices, unless copies to each of them are known."""
    others = other_devices(_number(device))
    known = set() if roofs is None else roofs.links.keys() | roofs.absent.keys()
    ways = {f"{word}{address}" for address in others.values() for word in BETWEEN}
    return [] if ways <= known else sorted(others)


def kept_roofs_of_device(device: str) -> Roofs | None:
    """Read what was measured before on such a device; None if nothing was."""
    return read_kept(_file_of(device))


def measured_on_device(device: str, seconds: float = _SECONDS) -> Roofs:
    """In this process, with ``seconds`` of the device's time for each roof, and in those that try kernels before it."""
    absent = _failures_apart(device)
    tried = DeviceUnderTrial(_number(device))
    arithmetic: dict[str, Trials] = {}
    for name in (each for each in NUMBER_TYPES if each not in absent):
        try:
            arithmetic[name] = tried.arithmetic(name)
        except NotAvailable as error:
            absent[name] = str(error)
    triads: dict[str, Trials] = {}
    for level, size in working_sets(tried.facts.cache_bytes, tried.free_bytes).items():
        if isinstance(size, str):
            absent[level] = size
        else:
            triads[level] = tried.triad(size)
    for _ in range(_TURNS):
        for trials in (*arithmetic.values(), *triads.values()):
            trials.take(seconds / _TURNS)
    links, unmeasured = host_links(tried, seconds)
    return Roofs(
        threads=None,
        operations_per_s={name: roof_in(trials) for name, trials in arithmetic.items()},
        bytes_per_s={level: roof_in(trials) for level, trials in triads.items()},
        cache_bytes={CACHE: tried.facts.cache_bytes} if tried.facts.cache_bytes else {},
        instructions={name: trials.instructions for name, trials in arithmetic.items()},
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        triad_instructions={level: trials.instructions for level, trials in triads.items()},
        absent=absent | unmeasured,
        links=links,
        pcie=trained_pcie(device) if links else None,
        device=device,
        device_name=tried.facts.name,
    )


def working_sets(cache_bytes: int, free_bytes: int) -> dict[str, int | str]:
    """Choose the bytes of the arrays that are in the cache and of those that are not, or explain why there are none."""
    found: dict[str, int | str] = {
        CACHE: int(_SHARE_OF_CACHE * cache_bytes) or "the driver does not report its size",
    }
    wanted = max(_TIMES_THE_CACHE * cache_bytes, _LEAST_MEMORY_BYTES)
    size = min(wanted, int(_SHARE_OF_MEMORY * free_bytes))
    if size < max(_LEAST_TIMES_THE_CACHE * cache_bytes, _LEAST_MEMORY_BYTES // 4):
        found[MEMORY] = f"arrays larger than the cache need {wanted / 2**20:,.0f} MiB, a quarter of what is free"
    else:
        found[MEMORY] = size
    return found


def _unproven(facts: DeviceFacts) -> list[str]:
    """Find the number types with kernels that no such device has run."""
    return [name for name in NUMBER_TYPES if is_unproven(name, facts)]


def _failures_apart(device: str) -> dict[str, str]:
    """Try each type with such kernels in a separate process, and say why it failed, if it did."""
    reasons: dict[str, str] = {}
    for name in _unproven(device_facts(_number(device))):
        try:
            _output_of(device, _TRIAL_OF, name, longest_s=_LONGEST_TRIAL_S)
        except NotAvailable as error:
            why = str(error).partition(". ")[0]  # what follows is about a context that has ended with its process
            reasons[name] = f"its kernels were tried in a separate process: {why}"
    return reasons


def _measured_apart(device: str, kind: type[Measured], *options: str) -> Measured:
    longest_s = _LONGEST_S + (
        0 if _PEERS in options else _LONGEST_TRIAL_S * len(_unproven(device_facts(_number(device))))
    )
    try:
        return msgspec.json.decode(_output_of(device, *options, longest_s=longest_s), type=kind)
    except NotAvailable as error:
        raise NotAvailable(f"the roofs of {device} could not be measured: {error}") from None


def _output_of(device: str, *options: str, longest_s: float) -> str:
    """Run this module in another process; raise NotAvailable with the reason in one line where that fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "fairlap.machine.hardware.device_roofs", device, *options]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=longest_s, check=False)
    except subprocess.TimeoutExpired:
        raise NotAvailable(f"it had not ended after {longest_s:g} seconds") from None
    except OSError as error:
        raise NotAvailable(reason_of(error)) from None
    if done.returncode < 0:
        raise NotAvailable(f"{signal.Signals(-done.returncode).name} ended it")
    if done.returncode != 0:
        raise NotAvailable(last_line(done.stderr) or f"it ended with status {done.returncode}")
    return done.stdout


def _number(device: str) -> int:
    """1 for "cuda:1", 0 for "cuda"."""
    return int(device.partition(":")[2] or 0)


def _file_of(device: str) -> Path:
    """One for each device, as far as its name, its driver, its power limit and its lanes describe it."""
    known = device_facts(_number(device))
    found, board = gpus(), board_of(device)
    own = [gpu for gpu in found.devices if not isinstance(board, str) and gpu.index == board.index]
    facts = {
        "device": known.name,
        "uuid": known.uuid or known.pci_bus_id,
        "capability": str(known.capability),
        "driver": found.driver,
        "cuda": str(known.driver_cuda_version),
        "power limit": str(own[0].power_limit_mw if own else None),
        "lanes": str(own[0].pcie_width if own else None),
        "kernels": str(_KERNELS) + (_WITH_UNPROVEN if _unproven(known) else ""),
    }
    return file_for(facts, "gpu")


def _main(device: str, *options: str) -> int:
    try:
        measured: object = None
        if _TRIAL_OF in options:
            DeviceUnderTrial(_number(device)).arithmetic(options[-1]).take(0.0)
        elif _PEERS in options:
            measured = links_between(_number(device), _SECONDS)
        else:
            measured = measured_on_device(device)
        print(msgspec.json.encode(measured).decode())
    except FairlapError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(*sys.argv[1:]))

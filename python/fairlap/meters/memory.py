"""The memory of a worker's contestant, by layer, in two separate phases: until it is ready, and while it runs.

Layers are never mixed. The kernel counts what is resident; a framework's allocator what is in use (live) and what it
keeps for later (reserved); a GPU's driver what is taken from the device. A layer without a number has a reason.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fairlap.machine.programs.process_tree import descendants

if TYPE_CHECKING:
    from fairlap.frameworks.contract import Contestant


_KIB = 1024
_NAMES = {
    "VmHWM": "peak",
    "VmPeak": "address_space_peak",
    "RssAnon": "anonymous",
    "RssFile": "file",
    "RssShmem": "shared",  # pinned memory too
}


def reset_peak(pid: int | str = "self") -> str:
    """Restart the high-water mark from what is resident now. Returns why that failed, or an empty text."""
    path = f"/proc/{pid}/clear_refs"
    try:
        with open(path, "w") as file:  # noqa: PTH123  (it must not be created)
            file.write("5")
    except OSError as error:
        return f"{path} could not be written: {error.strerror}"
    return ""


def memory_of(pid: int | str = "self") -> dict[str, int]:
    found = _kib_lines(f"/proc/{pid}/status", _NAMES)
    if not found and pid == "self":  # not Linux
        found["peak"] = _max_resident(resource.RUSAGE_SELF)
    return found


def proportional() -> dict[str, int]:
    """Each page that several processes share counts by its share."""
    return _kib_lines("/proc/self/smaps_rollup", {"Pss": "proportional"})


def largest_ended_child_bytes() -> int:
    return _max_resident(resource.RUSAGE_CHILDREN)


def lists_children() -> bool:
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


def _max_resident(who: int) -> int:
    """Linux counts in KiB, macOS in bytes."""
    return resource.getrusage(who).ru_maxrss * (1 if sys.platform == "darwin" else _KIB)


def _kib_lines(path: str, names: dict[str, str]) -> dict[str, int]:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    return {names[key]: int(value.split()[0]) * _KIB for key, _, value in pairs if key in names}


READY = "until_ready"
RUNNING = "while_running"
_KINDS = ("anonymous", "file", "shared")
_OF_ALLOCATORS = ("live", "live_peak", "reserved", "reserved_peak")
_OF_TRAINING = ("weights", "optimizer_state")
CACHE = "key_value_cache"
INSTALLED = "installed"  # on disk
LAYERS = (
    *(f"peak_{READY}", f"peak_{RUNNING}", "peak"),
    *_KINDS,
    *(f"{kind}_when_ready" for kind in _KINDS),
    *("proportional", "children_peak", "largest_ended_child_peak", "address_space_peak"),
    *(f"allocator_{name}" for name in _OF_ALLOCATORS),
    *(f"allocator_{name}_{READY}" for name in _OF_ALLOCATORS),
    *_OF_TRAINING,
    CACHE,
    "driver",
    INSTALLED,
)
"""Each has bytes or a reason in what a worker reports."""

_OF_THE_WORK = tuple(layer for layer in LAYERS if "child" not in layer and layer != INSTALLED)


class Memory(msgspec.Struct, frozen=True):
    """What a worker reports when it ends."""

    bytes: dict[str, int] = {}  # by layer
    absent: dict[str, str] = {}  # layers without a number, and why


class MemoryMeter:
    """``bytes`` and ``absent`` grow phase by phase. Nothing here runs while calls are timed."""

    def __init__(self, device: str) -> None:
        self.bytes: dict[str, int] = {}
        self.absent: dict[str, str] = {}
        self._device, self._elsewhere = device, ""
        self._of_runs: int | str = ""  # the peak of what each call starts, or why it is unknown
        self._device_before = self._device_used()
        self._ended_children_before = largest_ended_child_bytes()  # the guardian's, and what asked for the device

    def prepared(self, elsewhere: str = "") -> None:
        """Keep the peak before fairlap reads the weights back, which takes memory that is not the contestant's.

        ``elsewhere`` is why this process does not hold the model: then its memory is a client's.
        """
        self._elsewhere = elsewhere
        self._keep_peak(READY)

    def before_first_call(self) -> None:
        if why := reset_peak():
            self.absent["peak_of_first_call"] = why

    def ready(self, contestant: Contestant) -> None:
        """After the first call, before its answer is taken out of the framework."""
        resident = memory_of()
        if "peak_of_first_call" not in self.absent:
            self._keep_peak(READY)
        self.bytes |= {f"{kind}_when_ready": resident[kind] for kind in _KINDS if kind in resident}
        if contestant.forget_memory_peak is not None:
            self._add_allocator(contestant, f"_{READY}")

    def before_running(self, contestant: Contestant) -> None:
        """Children too: one that was large while compiling need not be while running."""
        if why := reset_peak():
            self.absent[f"peak_{RUNNING}"] = why
        for child in descendants(os.getpid()):
            reset_peak(child)
        if contestant.forget_memory_peak is not None:
            contestant.forget_memory_peak()
        elif contestant.memory_bytes is not None:
            why = "the peak of its allocator cannot be reset, so the reported one covers both phases"
            self._absent_allocator(f"_{READY}", why)

    def ran(self, contestant: Contestant) -> None:
        """After the timed calls, before the last answer."""
        resident = memory_of()
        if f"peak_{RUNNING}" not in self.absent:
            self._keep_peak(RUNNING)
        self.bytes |= {name: resident[name] for name in (*_KINDS, "address_space_peak") if name in resident}
        self._add_children()
        self._add_runs(contestant, resident.get("peak", 0))
        self._add_allocator(contestant)
        self._add_training(contestant)
        self._add_driver()
        self._add_cache(contestant)

    def result(self, installed_bytes: int = 0) -> Memory:
        """Return the peak of the two phases; copies that fairlap makes for the checks between them do not count."""
        self.bytes |= {INSTALLED: installed_bytes} if installed_bytes else {}
        self.absent |= {} if installed_bytes else {INSTALLED: "nothing installed is known to be its own"}
        peaks = [self.bytes[name] for name in (f"peak_{READY}", f"peak_{RUNNING}") if name in self.bytes]
        if peaks:
            self.bytes["peak"] = max(peaks)
        self.bytes |= proportional()
        if self._elsewhere:
            for layer in _OF_THE_WORK:
                self.bytes.pop(layer, None)
                self.absent[layer] = self._elsewhere
        if isinstance(self._of_runs, int):
            self.bytes["peak"] = self._of_runs
            del self.absent["peak"]
        elif self._of_runs:
            self.absent["peak"] = self._of_runs
        if self._of_runs:  # a small child that ended counts the memory of this process, in which it began
            self.absent["largest_ended_child_peak"] = "the peak is that of the processes that it starts"
        elif (largest := largest_ended_child_bytes()) > self._ended_children_before:
            self.bytes["largest_ended_child_peak"] = largest
        else:
            self.absent["largest_ended_child_peak"] = "no child larger than fairlap's own has ended"
        for layer in LAYERS:
            if layer not in self.bytes:
                self.absent.setdefault(layer, "this system does not report it")
        return Memory(dict(self.bytes), dict(self.absent))  # which later phases do not change

    def _keep_peak(self, phase: str) -> None:
        peak = memory_of().get("peak")
        if peak is not None:
            self.bytes[f"peak_{phase}"] = max(peak, self.bytes.get(f"peak_{phase}", 0))

    def _add_children(self) -> None:
        """Add the sum of the children's peaks, which need not have been at the same time."""
        if not lists_children():
            self.absent["children_peak"] = "this system does not list the children of a process"
            return
        peaks = (memory_of(child).get("peak", 0) for child in descendants(os.getpid()))
        self.bytes["children_peak"] = sum(peaks)

    def _add_runs(self, contestant: Contestant, own_bytes: int) -> None:
        if contestant.peak_of_runs is not None:
            self._of_runs = contestant.peak_of_runs(own_bytes)

    def _add_allocator(self, contestant: Contestant, phase: str = "") -> None:
        if contestant.memory_bytes is None:
            why = contestant.no_memory_because or "its adapter does not report its allocator"
            self._absent_allocator("", why)
            self._absent_allocator(f"_{READY}", why)
            return
        sizes: Mapping[str, int] = contestant.memory_bytes()
        self.bytes |= {f"allocator_{name}{phase}": size for name, size in sizes.items()}
        self._absent_allocator(phase, "its allocator does not report it")

    def _add_training(self, contestant: Contestant) -> None:
        """Add what it holds from step to step."""
        training = contestant.training
        if training is None or training.held_bytes is None:
            why = "it does not train here" if training is None else "its adapter does not report it"
            self.absent |= dict.fromkeys(_OF_TRAINING, why)
        else:
            self.bytes |= training.held_bytes()

    def _add_cache(self, contestant: Contestant) -> None:
        """Add what it holds of an answer, for which it gives another one: the other layers are counted before."""
        if contestant.cache_bytes is not None:
            self.bytes[CACHE] = contestant.cache_bytes()
        else:
            generates = contestant.stamps is not None
            self.absent[CACHE] = "its adapter does not report it" if generates else "it does not answer token by token"

    def _absent_allocator(self, phase: str, why: str) -> None:
        layers = (f"allocator_{name}{phase}" for name in _OF_ALLOCATORS)
        self.absent |= {layer: why for layer in layers if layer not in self.bytes}

    def _device_used(self) -> int | str:
        if self._device == "cpu":
            return "the contestant ran on the processor"
        from fairlap.machine.hardware.cuda_devices import used_bytes

        return used_bytes(self._device)

    def _add_driver(self) -> None:
        """Taken from a device that is otherwise idle, including kernels, contexts and libraries."""
        before, now = self._device_before, self._device_used()
        if isinstance(before, str):
            self.absent["driver"] = before
        elif isinstance(now, str):
            self.absent["driver"] = now
        elif now < before:
            self.absent["driver"] = "other processes freed memory of the device meanwhile"
        else:
            self.bytes["driver"] = now - before

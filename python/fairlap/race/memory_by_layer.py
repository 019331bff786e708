"""What a worker's contestant holds, by layer, in two phases that are kept apart: until it is ready, while it runs.

Layers are never mixed. The kernel counts what is resident; a framework's allocator what is in use (live) and what it
keeps for later (reserved); a GPU's driver what is gone from the device. A layer without a figure says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlap.race import own_memory

if TYPE_CHECKING:
    from fairlap.frameworks.contract import Contestant

READY = "until_ready"
RUNNING = "while_running"
_KINDS = ("anonymous", "file", "shared")
_OF_ALLOCATORS = ("live", "live_peak", "reserved", "reserved_peak")
LAYERS = (
    *(f"peak_{READY}", f"peak_{RUNNING}", "peak"),
    *_KINDS,
    *(f"{kind}_when_ready" for kind in _KINDS),
    *("proportional", "children_peak", "largest_ended_child_peak", "address_space_peak"),
    *(f"allocator_{name}" for name in _OF_ALLOCATORS),
    *(f"allocator_{name}_{READY}" for name in _OF_ALLOCATORS),
    "driver",
)
"""Each has bytes, or says why not, when the worker has told its memory."""


class MemoryByLayer:
    """``bytes`` and ``absent`` grow phase by phase. Nothing here runs while calls are timed."""

    def __init__(self, device: str) -> None:
        self.bytes: dict[str, int] = {}
        self.absent: dict[str, str] = {}
        self._device = device
        self._ended_children_before = own_memory.largest_ended_child_bytes()  # the guardian's
        self._device_before = self._device_used()

    def prepared(self) -> None:
        """Before fairlap reads the weights back, which takes memory that is not the contestant's."""
        self._keep_peak(READY)

    def before_first_call(self) -> None:
        if why := own_memory.reset_peak():
            self.absent["peak_of_first_call"] = why

    def ready(self, contestant: Contestant) -> None:
        """The first call is over, and its answer not yet taken out of the framework."""
        held = own_memory.memory_of()
        if "peak_of_first_call" not in self.absent:
            self._keep_peak(READY)
        self.bytes |= {f"{kind}_when_ready": held[kind] for kind in _KINDS if kind in held}
        if contestant.forget_memory_peak is not None:
            self._tell_allocator(contestant, f"_{READY}")

    def before_running(self, contestant: Contestant) -> None:
        """Children too: one that was large while it compiled need not be while it runs."""
        if why := own_memory.reset_peak():
            self.absent[f"peak_{RUNNING}"] = why
        for child in own_memory.descendants():
            own_memory.reset_peak(child)
        if contestant.forget_memory_peak is not None:
            contestant.forget_memory_peak()
        elif contestant.memory_bytes is not None:
            why = "its allocator's peak cannot be begun anew: the one that is told is of both phases"
            self._absent_allocator(f"_{READY}", why)

    def ran(self, contestant: Contestant) -> None:
        """Timed, and not yet asked for its last answer."""
        held = own_memory.memory_of()
        if f"peak_{RUNNING}" not in self.absent:
            self._keep_peak(RUNNING)
        self.bytes |= {name: held[name] for name in (*_KINDS, "address_space_peak") if name in held}
        self._tell_children()
        self._tell_allocator(contestant)
        self._tell_driver()

    def told(self) -> tuple[dict[str, int], dict[str, str]]:
        """The peak is that of the two phases: fairlap's own copies, made for the checks between them, do not count."""
        peaks = [self.bytes[name] for name in (f"peak_{READY}", f"peak_{RUNNING}") if name in self.bytes]
        if peaks:
            self.bytes["peak"] = max(peaks)
        self.bytes |= own_memory.proportional()
        if (largest := own_memory.largest_ended_child_bytes()) > self._ended_children_before:
            self.bytes["largest_ended_child_peak"] = largest
        else:
            self.absent["largest_ended_child_peak"] = "no child has ended that was larger than fairlap's own"
        for layer in LAYERS:
            if layer not in self.bytes:
                self.absent.setdefault(layer, "this system does not tell it")
        return self.bytes, self.absent

    def _keep_peak(self, phase: str) -> None:
        peak = own_memory.memory_of().get("peak")
        if peak is not None:
            self.bytes[f"peak_{phase}"] = max(peak, self.bytes.get(f"peak_{phase}", 0))

    def _tell_children(self) -> None:
        """The sum of their peaks, which they need not have had at one time."""
        if not own_memory.lists_children():
            self.absent["children_peak"] = "this system lists no children of a process"
            return
        peaks = (own_memory.memory_of(child).get("peak", 0) for child in own_memory.descendants())
        self.bytes["children_peak"] = sum(peaks)

    def _tell_allocator(self, contestant: Contestant, phase: str = "") -> None:
        if contestant.memory_bytes is None:
            why = contestant.no_memory_because or "its adapter tells nothing of its allocator"
            self._absent_allocator("", why)
            self._absent_allocator(f"_{READY}", why)
            return
        told: Mapping[str, int] = contestant.memory_bytes()
        self.bytes |= {f"allocator_{name}{phase}": size for name, size in told.items()}
        self._absent_allocator(phase, "its allocator does not tell it")

    def _absent_allocator(self, phase: str, why: str) -> None:
        layers = (f"allocator_{name}{phase}" for name in _OF_ALLOCATORS)
        self.absent |= {layer: why for layer in layers if layer not in self.bytes}

    def _device_used(self) -> int | str:
        if self._device == "cpu":
            return "the work ran on the processor"
        from fairlap.machine.device_memory import used_bytes

        return used_bytes(self._device)

    def _tell_driver(self) -> None:
        """What is gone from a device that was otherwise idle: kernels, contexts and libraries are in it."""
        before, now = self._device_before, self._device_used()
        if isinstance(before, str):
            self.absent["driver"] = before
        elif isinstance(now, str):
            self.absent["driver"] = now
        elif now < before:
            self.absent["driver"] = "others gave memory of the device back meanwhile"
        else:
            self.bytes["driver"] = now - before

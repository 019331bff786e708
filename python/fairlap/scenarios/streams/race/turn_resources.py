"""What a started server takes in its turn: the peak memory of its processes, and energy where a sensor shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fairlap.meters.energy import EnergyMeter, EnergyOfBlock, Sensed
from fairlap.meters.memory import READY, RUNNING, Memory
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.started.started_server import StartedServer

_PEAKS = (f"peak_{READY}", f"peak_{RUNNING}", "peak")
_NOT_LISTED = "this system does not list the processes that another one started"


@dataclass(frozen=True)
class Resources:
    memory: Memory
    energy: EnergyOfBlock | None
    energy_absent: str
    sensed: Sensed  # before the race


def resources_elsewhere(why: str) -> Resources:
    """Of a server that fairlap did not start, or that could not be."""
    return Resources(Memory(absent=dict.fromkeys(_PEAKS, why)), None, why, Sensed(absent=why))


@dataclass
class TurnMeter:
    """Of one server. ``until_ready_bytes`` is the peak of its memory before its first turn."""

    process: StartedServer
    energy: EnergyMeter
    sensed: Sensed
    until_ready_bytes: int
    _span_ns: tuple[int, int] = field(default=(0, 0), init=False)
    _running_bytes: int = field(default=0, init=False)
    _no_running: str = field(default="", init=False)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        self._no_running = self.process.forget_peaks()
        reads = bool(self.energy.sensors)
        begin_ns = self.energy.begin() if reads else 0
        try:
            yield
        finally:
            end_ns = self.energy.end() if reads else 0
            self._span_ns = (begin_ns, end_ns)
        self._running_bytes = self.process.peak_bytes()

    def found(self, served: Served | None, several: str) -> Resources:
        """Return those of the turn that was measured. ``several``: why its energy is not that of the answers."""
        energy, absent = None, self.energy.absent
        answered = 0 if served is None else int(served.answered.sum())
        if self.energy.sensors and (several or not answered):
            absent = several or "no answer came"
        elif self.energy.sensors:
            begin_ns, end_ns = self._span_ns
            read = self.energy.read_somewhere_in(begin_ns, end_ns, end_ns - begin_ns)
            energy = EnergyOfBlock((end_ns - begin_ns) / 1e9, answered, read)
        return Resources(self._memory(), energy, absent, self.sensed)

    def _memory(self) -> Memory:
        found = {f"peak_{READY}": self.until_ready_bytes}
        if not self._no_running:
            found[f"peak_{RUNNING}"] = self._running_bytes
        known = {name: each for name, each in found.items() if each}
        if not known:
            return Memory(absent=dict.fromkeys(_PEAKS, _NOT_LISTED))
        absent = {name: self._no_running or _NOT_LISTED for name in _PEAKS[:2] if name not in known}
        return Memory({**known, "peak": max(known.values())}, absent)

"""What others took from contestants, and whether a ratio of theirs can still be a property of them.

Threads that meet at barriers wait for the one that lost its core, so under load a contestant whose threads meet often
loses many times what it was robbed of, and its neighbour may lose nothing. No figure corrects for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fairlap import quantity_text
from fairlap.meters import device_slowdown, disturbances

E_BUSY_MACHINE = "E_BUSY_MACHINE"
E_GPU_THROTTLED = "E_GPU_THROTTLED"
E_THROTTLED = "E_THROTTLED"
_WORTH_SAYING = 0.1
_STARVED = 0.5  # measured: docs/explanation/verdict.md has the ratios by load
STOPPED = 0.01  # of the time that was measured
SEVERAL_THREADS = 1.2  # times the CPU time of the thread that calls, of all threads

Whose = Literal["contestants", "programs", "callables"]
_FEWER: Mapping[Whose, tuple[str, str]] = {
    "contestants": ("--threads", "fewer --threads"),
    "programs": ("the threads of the programs", "--threads 1, which keeps all threads of a program on one core"),
    "callables": ("their threads", "fewer threads, such as OMP_NUM_THREADS=1"),
}


@dataclass(frozen=True)
class StolenTime:
    """Medians over the blocks of one work; 0 or empty where the kernel does not count."""

    by_contestant: Mapping[str, float] = field(default_factory=dict)  # seconds of waiting in a second of its turns
    least: float = 0.0
    """Of the contestant of a block that waited least, since one with many threads waits for itself; or what others took
    from one whose threads end with its calls, if that is more. Others are never its own threads."""
    hypervisor: float = 0.0  # share of all cores' time
    throttled_blocks: int = 0
    blocks: int = 0
    meets_barriers: bool = True  # a contestant that computes on more than one thread
    holding_device: float = 0.0  # processes of others with memory on the GPU
    computing_on_device: float = 0.0  # those of them that computed there
    device_slowed: tuple[float, ...] = ()  # by block, the share of the time in which the GPU was slowed

    @property
    def is_worth_saying(self) -> bool:
        of_cores = self.least >= _WORTH_SAYING or self.hypervisor >= _WORTH_SAYING
        return of_cores or self.is_throttled or self.holding_device > 0 or bool(self._slowed_blocks)

    @property
    def is_throttled(self) -> bool:
        return 0 < self.blocks == self.throttled_blocks

    def refusal(self, *, threads: int, whose: Whose = "contestants", of_slowest: bool = False) -> tuple[str, str]:
        """Explain why no ratio is claimed, with the code; empty where one may be.

        A single thread meets no other, and neither does what computes on one thread, such as most callables: its median
        is that of calls which kept their core, and ``of_slowest`` is a figure of those that did not. A program chooses
        its threads itself, but not its cores.
        """
        above, fewer = _FEWER[whose]
        if self.is_throttled:
            advice = f"raise the quota above {above}, or bind cores instead"
            return f"{self.what}; {advice}", E_THROTTLED
        suffers = of_slowest or (threads > 1 and self.meets_barriers)
        if suffers and self.least >= _STARVED:
            advice = f", or with {fewer}" if threads > 1 else ""
            return f"{self.what}; race on a quiet machine{advice}", E_BUSY_MACHINE
        return "", ""

    def refusal_on_device(self) -> tuple[str, str]:
        """Likewise of a race on a GPU that was slowed down, or on which other processes computed."""
        if self._slowed_blocks:
            return f"{self.what}; let it cool down, or lock a clock that it can sustain", E_GPU_THROTTLED
        if self.computing_on_device > 0:
            return f"{self.what}; end them, or race on another device", E_BUSY_MACHINE
        return "", ""

    @property
    def what(self) -> str:
        """What was taken, by what, and from which contestant."""
        parts = []
        if self.is_throttled:
            in_all = f" in all {self.blocks} blocks" if self.blocks > 1 else ""
            parts.append(f"the quota of the control group stopped what was measured{in_all}")
        if self.least >= _WORTH_SAYING:
            took = "" if self.is_throttled else "other processes took cores, and "  # a quota makes threads wait too
            each = ", ".join(f"{name} {_seconds(waited)}" for name, waited in self.by_contestant.items())
            parts.append(f"{took}threads waited for a core, in each second: {each}")
        if self.hypervisor >= _WORTH_SAYING:
            parts.append(f"the hypervisor took {quantity_text.share(self.hypervisor)} of the CPU time from all")
        if self._slowed_blocks:
            parts.append(self._by_device)
        if self.holding_device > 0:
            parts.append(self._on_device)
        return "; ".join(parts)

    @property
    def _slowed_blocks(self) -> list[float]:
        return [share for share in self.device_slowed if share > device_slowdown.MOST_SLOWED]

    @property
    def _by_device(self) -> str:
        slowed = self._slowed_blocks
        blocks = f"{len(slowed)} of {quantity_text.count(len(self.device_slowed), 'block')}"
        return f"temperature or power slowed the GPU down in {blocks}, for up to {quantity_text.share(max(slowed))}"

    @property
    def _on_device(self) -> str:
        others = quantity_text.count(round(self.holding_device), "other process")
        if self.computing_on_device > 0:
            return f"{others} held the GPU, and its kernels took turns with theirs (`fairlap doctor` names them)"
        return f"{others} held memory of the GPU, and were not seen to compute (`fairlap doctor` names them)"


def waited_for_others(readings: Mapping[str, float]) -> float:
    """Seconds in a second; beyond the CPU time of others, where it was read, threads waited for each other.

    Raises KeyError where no waiting was read.
    """
    waited = readings[disturbances.WAITED]
    return min(waited, readings.get(disturbances.OTHERS, waited))


def _seconds(waited: float) -> str:
    return quantity_text.duration(1e9 * waited)

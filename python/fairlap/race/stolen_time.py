"""What others took from the contestants of a race, and whether a ratio of theirs can still be a property of them.

Threads that meet at barriers wait for the one that lost its core, so under load a contestant whose threads meet often
loses many times what it was robbed of, and its neighbour may lose nothing. No figure corrects for that. The decision
looks at a block's readings sorted, so it does not know which contestant was robbed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairlap import quantity_text
from fairlap.meters import device_neighbours, disturbances
from fairlap.scenarios.process_result import ProcessResult

E_BUSY_MACHINE = "E_BUSY_MACHINE"
E_THROTTLED = "E_THROTTLED"
_WORTH_SAYING = 0.1
_STARVED = 0.5  # measured: docs/explanation/verdict.md has the ratios by load
_STOPPED = 0.01
_SEVERAL_THREADS = 1.2


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

    @property
    def is_worth_saying(self) -> bool:
        of_cores = self.least >= _WORTH_SAYING or self.hypervisor >= _WORTH_SAYING
        return of_cores or self.is_throttled or self.holding_device > 0

    @property
    def is_throttled(self) -> bool:
        return 0 < self.blocks == self.throttled_blocks

    def refusal(self, *, threads: int, has_programs: bool = False) -> tuple[str, str]:
        """Explain why no ratio is claimed, with the code; empty where one may be.

        A single thread meets no other, and neither does what computes on one thread, such as most callables. A program
        chooses its threads itself.
        """
        if self.is_throttled:
            above = "the threads of the programs" if has_programs else "--threads"
            advice = f"raise the quota above {above}, or bind cores instead"
            return f"{self.what}; {advice}", E_THROTTLED
        if threads > 1 and self.meets_barriers and self.least >= _STARVED:
            fewer = "fewer threads of the programs" if has_programs else "fewer --threads"
            return f"{self.what}; race on a quiet machine, or with {fewer}", E_BUSY_MACHINE
        return "", ""

    def refusal_on_device(self) -> tuple[str, str]:
        """Likewise of a race on a GPU, where other processes computed meanwhile."""
        if self.computing_on_device > 0:
            return f"{self.what}; end them, or race on another device", E_BUSY_MACHINE
        return "", ""

    @property
    def what(self) -> str:
        """What was taken, by what, and from which contestant."""
        parts = []
        if self.is_throttled:
            parts.append(f"the quota of the control group stopped the contestants in all {self.blocks} blocks")
        if self.least >= _WORTH_SAYING:
            took = "" if self.is_throttled else "other processes took cores, and "  # a quota makes threads wait too
            each = ", ".join(f"{name} {_seconds(waited)}" for name, waited in self.by_contestant.items())
            parts.append(f"{took}threads waited for a core, in each second: {each}")
        if self.hypervisor >= _WORTH_SAYING:
            parts.append(f"the hypervisor took {quantity_text.share(self.hypervisor)} of the CPU time from all")
        if self.holding_device > 0:
            parts.append(self._on_device)
        return "; ".join(parts)

    @property
    def _on_device(self) -> str:
        others = quantity_text.count(round(self.holding_device), "other process")
        if self.computing_on_device > 0:
            return f"{others} held the GPU, and its kernels took turns with theirs (`fairlap doctor` names them)"
        return f"{others} held memory of the GPU, and were not seen to compute (`fairlap doctor` names them)"


def stolen_time(processes: Sequence[ProcessResult]) -> StolenTime:
    finished = [each for each in processes if each.finished]
    blocks: dict[int, list[ProcessResult]] = {}
    contestants: dict[str, list[ProcessResult]] = {}
    for process in finished:
        blocks.setdefault(process.block, []).append(process)
        contestants.setdefault(process.contestant, []).append(process)
    waited = {name: _waited(own) for name, own in contestants.items()}
    return StolenTime(
        {name: float(np.median(own)) for name, own in waited.items() if own},
        max(_median_of_blocks(blocks, disturbances.WAITED, min), _median_of_blocks(blocks, disturbances.TAKEN, max)),
        _median_of_blocks(blocks, disturbances.STEAL, max),
        sum(map(_is_throttled, blocks.values())),
        len(blocks),
        any(map(_computes_on_several_threads, finished)),
        _median_of_blocks(blocks, device_neighbours.HOLDING, max),
        _median_of_blocks(blocks, device_neighbours.COMPUTING, max),
    )


def _computes_on_several_threads(process: ProcessResult) -> bool:
    """Compare the CPU time of its calls in all threads and in the one that calls.

    Of threads and programs that end with a call it is not known how many there are at once.
    """
    if disturbances.TAKEN in process.machine:
        return True
    of_all, of_one = (process.per_call.get(name, 0.0) for name in ("process_cpu_ns", "thread_cpu_ns"))
    return not of_one or of_all > _SEVERAL_THREADS * of_one


def _is_throttled(block: Sequence[ProcessResult]) -> bool:
    """Check whether the block was stopped for more than a hundredth of the time.

    A group that has as many cores as threads is stopped for an instant now and then.
    """
    stopped_s = max(_readings(block, disturbances.THROTTLED), default=0.0)
    return stopped_s > _STOPPED * sum(each.phases_s.get("measured", 0.0) for each in block)


def _median_of_blocks(
    blocks: Mapping[int, Sequence[ProcessResult]], name: str, one: Callable[[Sequence[float]], float]
) -> float:
    found = [one(own) for block in blocks.values() if (own := _readings(block, name))]
    return float(np.median(found)) if found else 0.0


def _waited(processes: Sequence[ProcessResult]) -> list[float]:
    """Seconds in a second; where threads have ended with their calls, what others took then, if that is more."""
    names = (disturbances.WAITED, disturbances.TAKEN)
    return [max(own) for each in processes if (own := [each.machine[name] for name in names if name in each.machine])]


def _readings(processes: Sequence[ProcessResult], name: str) -> list[float]:
    return [each.machine[name] for each in processes if name in each.machine]


def _seconds(waited: float) -> str:
    return quantity_text.duration(1e9 * waited)

"""What others took from the contestants of a race, in the period in which the judged figure was measured.

Whether a ratio may be claimed is decided by a block's readings sorted, so by no knowledge of who was robbed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter

import numpy as np

from fairlap.meters import device_neighbours, device_slowdown, disturbances
from fairlap.meters.stolen_time import SEVERAL_THREADS, STOPPED, StolenTime, waited_for_others
from fairlap.scenarios.process_result import Period, ProcessResult


def stolen_time(processes: Sequence[ProcessResult], period: Period = "turns") -> StolenTime:
    """From what was read of the machine in the period in which the judged figure was measured."""
    finished = [each for each in processes if each.finished]
    blocks: dict[int, list[ProcessResult]] = {}
    contestants: dict[str, list[ProcessResult]] = {}
    for process in finished:
        blocks.setdefault(process.block, []).append(process)
        contestants.setdefault(process.contestant, []).append(process)
    waited = {name: _values(own, period, _waited_or_taken) for name, own in contestants.items()}
    read = partial(_median_of_blocks, blocks, period)
    return StolenTime(
        {name: float(np.median(own)) for name, own in waited.items() if own},
        max(read(waited_for_others, min), read(itemgetter(disturbances.TAKEN), max)),
        read(itemgetter(disturbances.STEAL), max),
        sum(_is_throttled(block, period) for block in blocks.values()),
        len(blocks),
        any(_computes_on_several_threads(each, period) for each in finished),
        read(itemgetter(device_neighbours.HOLDING), max),
        read(itemgetter(device_neighbours.COMPUTING), max),
        tuple(
            max(slowed)
            for block in blocks.values()
            if (slowed := _values(block, period, itemgetter(device_slowdown.SLOWED)))
        ),
    )


def _computes_on_several_threads(process: ProcessResult, period: Period) -> bool:
    """Compare the CPU time of its calls in all threads and in the one that calls.

    Of threads and programs that end with a call it is not known how many there are at once.
    """
    if disturbances.TAKEN in process.readings(period):
        return True
    of_all, of_one = (process.per_call.get(name, 0.0) for name in ("process_cpu_ns", "thread_cpu_ns"))
    return not of_one or of_all > SEVERAL_THREADS * of_one


def _is_throttled(block: Sequence[ProcessResult], period: Period) -> bool:
    """Check whether the block was stopped for more than a hundredth of the time.

    A group that has as many cores as threads is stopped for an instant now and then.
    """
    stopped_s = _values(block, period, itemgetter(disturbances.THROTTLED))
    if own_s := _values(block, period, itemgetter(disturbances.MEASURED)):  # each was read while it ran, and no other
        return sum(stopped_s) > STOPPED * sum(own_s)
    return max(stopped_s, default=0.0) > STOPPED * sum(each.phases_s.get("measured", 0.0) for each in block)


def _waited_or_taken(readings: Mapping[str, float]) -> float:
    """Seconds in a second; where threads have ended with their calls, what others took then, if that is more."""
    if disturbances.TAKEN not in readings:
        return waited_for_others(readings)
    waited = waited_for_others(readings) if disturbances.WAITED in readings else 0.0
    return max(waited, readings[disturbances.TAKEN])


_Read = Callable[[Mapping[str, float]], float]


def _median_of_blocks(
    blocks: Mapping[int, Sequence[ProcessResult]], period: Period, read: _Read, one: Callable[[Sequence[float]], float]
) -> float:
    found = [one(own) for block in blocks.values() if (own := _values(block, period, read))]
    return float(np.median(found)) if found else 0.0


def _values(processes: Sequence[ProcessResult], period: Period, read: _Read) -> list[float]:
    """Of the processes of which it was read."""
    found = []
    for process in processes:
        with suppress(KeyError):
            found.append(read(process.readings(period)))
    return found

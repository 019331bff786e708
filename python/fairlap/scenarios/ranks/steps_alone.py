"""Steps of all ranks together and steps of each rank alone, in turns, so that what the machine does hits both alike.

It runs in each rank. Every turn begins with steps that do not count: in the first, ranks that were quicker alone wait
for the others, and what one kind of step left in the caches is not what the other one needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.models.arrays import Arrays
from fairlap.scenarios.held import Held
from fairlap.scenarios.ranks.ranks_messages import StepAlone, SteppedAlone


def serve(held: Held, request: StepAlone) -> tuple[SteppedAlone, tuple[()]]:
    """All ranks must get through it, or none."""
    if held.settings.rank is None:
        raise Unsupported("it is no rank: all of its steps are alone")
    held.before_second()
    work, sets = held.read_again()
    with held.phases.unreported():
        alone = held.build_alone(work)
    return stepped_alone(held.contestant, alone, sets, request), ()


def stepped_alone(together: Contestant, alone: Contestant, sets: Sequence[Arrays], request: StepAlone) -> SteppedAlone:
    """Of this rank: its medians by turn."""
    steps = {id(each): _Steps(each, sets) for each in (together, alone)}
    found: dict[int, list[float]] = {id(together): [], id(alone): []}
    for _ in range(request.turns):
        for each in (together, alone):
            found[id(each)].append(steps[id(each)].median_ns(request.steps))
    return SteppedAlone(tuple(found[id(together)]), (tuple(found[id(alone)]),))


_WARM_UP = 3


class _Steps:
    def __init__(self, contestant: Contestant, sets: Sequence[Arrays]) -> None:
        self._contestant = contestant
        self._calls: list[Callable[[], Any]] = [contestant.bind(arrays) for arrays in sets]

    def median_ns(self, steps: int) -> float:
        from fairlap.engine import time_calls

        if self._contestant.training is not None:
            self._contestant.training.reset()
        first, *others = self._calls
        measurement = time_calls(
            first, in_turn=others, done=self._contestant.done, samples=steps, warmup=_WARM_UP, calls_per_sample=1
        )
        return float(np.nanmedian(measurement.wall_ns))

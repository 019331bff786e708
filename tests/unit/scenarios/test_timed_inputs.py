"""Model and inputs of the timed calls are moved in memory, where the contestant can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fairlap.frameworks.contract import Contestant
from fairlap.models.arrays import Arrays
from fairlap.scenarios.timed_inputs import TimedInputs


class Watched:
    """A contestant that notes where its inputs are, and in which order it is bound, called and moved."""

    def __init__(self, *, moves: bool) -> None:
        self.did: list[str] = []
        self.places: list[int] = []
        self.contestant = Contestant(
            bind=self._bind, done=None, outputs=dict, weights=dict, in_force={}, deal=self._deal if moves else None
        )
        self.timed = TimedInputs(self.contestant, [{"x": np.full(1000, float(n))} for n in range(2)], [])

    def _bind(self, inputs: Arrays) -> Callable[[], Any]:
        number = int(inputs["x"][0])
        self.places.append(inputs["x"].ctypes.data)
        self.did.append(f"bind {number}")
        return lambda: self.did.append(f"call {number}")

    def _deal(self) -> None:
        self.did.append("deal")


def test_inputs_are_at_new_places_and_each_is_called_once_there() -> None:
    watched = Watched(moves=True)
    watched.timed.bound(0)
    watched.timed.bound(1)
    watched.did.clear()
    assert watched.timed.deal(1)
    assert watched.did == ["deal", "bind 0", "call 0", "bind 1", "call 1"]
    assert watched.timed.deal(2)
    assert len(set(watched.places)) >= 4
    assert watched.places[0] not in watched.places[2:4]
    watched.timed.bound(0)()
    assert watched.did[-1] == "call 0", "what was bound then is called from then on"


def test_a_contestant_that_cannot_move_stays_as_it_is() -> None:
    watched = Watched(moves=False)
    first = watched.timed.bound(0)
    assert not watched.timed.deal(1)
    assert watched.timed.bound(0) is first

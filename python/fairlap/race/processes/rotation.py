"""What a process does again and again in a drawn order, in turns: calls of several sizes, answers to several files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlap.race.planning.plan import Measuring
from fairlap.race.processes.bench import Bench
from fairlap.race.processes.turn_start import unused_calls

_FEWEST_ROUNDS = 2  # so that each has that many samples at least
_FEWEST_TURNS = 4
_MOST_OF_A_TURN = 4096


@dataclass(frozen=True)
class Turn:
    """``places`` are timed, after ``unused`` ones that are not: the machine had another contestant before."""

    unused: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def whole(self) -> tuple[int, ...]:
        return (*self.unused, *self.places)


class Rotation:
    """``order`` is a round, in which a place may stand several times."""

    def __init__(self, order: Sequence[int], measuring: Measuring, *, fewest_of_a_turn: int = 1) -> None:
        self.order = order
        self.turns = 0
        self._turn_s = measuring.seconds / max(measuring.rounds, _FEWEST_TURNS)
        self._fewest_of_a_turn, self._wanted_s = fewest_of_a_turn, measuring.seconds
        self._place, self._measured_s = 0, 0.0
        self._ended = False

    @property
    def goes_on(self) -> bool:
        if self._ended:
            return False
        enough = self._place >= _FEWEST_ROUNDS * len(self.order) and self.turns >= _FEWEST_TURNS
        return not enough or self._measured_s < self._wanted_s

    def may_step(self, bench: Bench) -> bool:
        """End it after a whole round, where the race has no more time."""
        self._ended = self._place >= len(self.order) and not bench.may_go_on()
        return not self._ended

    def turn(self, usual_s: Callable[[int], float]) -> Turn:
        """As many of the order as fill a turn, by what each usually takes."""
        each_s = {place: usual_s(place) for place in set(self.order)}
        places: list[int] = []
        left_s = self._turn_s
        while (left_s > 0 or len(places) < self._fewest_of_a_turn) and len(places) < _MOST_OF_A_TURN:
            place = self.order[(self._place + len(places)) % len(self.order)]
            places.append(place)
            left_s -= each_s[place]
        unused = min(unused_calls(self._turn_s / len(places), self._turn_s), len(places))
        return Turn(tuple(places[len(places) - unused :]), tuple(places))

    def took(self, turn: Turn, seconds: float) -> None:
        self._place += len(turn.places)
        self.turns += 1
        self._measured_s += seconds

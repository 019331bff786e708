"""What comes before the timed calls of a turn, after others had the machine."""

from __future__ import annotations

import random

from fairlap import verdict
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.scenarios.calls.latency_messages import Measured
from fairlap.scenarios.process_result import ProcessResult

_UNUSED_CALLS = 6
_MOST_UNUSED_TURNS = 2
_LONGEST_UNUSED_CALL = 4  # turns
_MOST_DEALT_BYTES = 2**27  # of weights, which are held twice for a moment


def unused_calls(call_s: float, turn_s: float) -> int:
    """Count the unused calls at the start of a turn that refill the caches, which the others used meanwhile.

    That takes a number of calls, not a time: the first takes 14 to 60 % longer than in a loop and the fourth up to 2 %,
    whether a call takes 2 or 20 ms. Of a call of more than four turns, refilling is 2 % at most; see
    docs/explanation/taking-turns.md.
    """
    if not call_s <= _LONGEST_UNUSED_CALL * turn_s:  # or unknown
        return 0
    return max(1, min(_UNUSED_CALLS, int(_MOST_UNUSED_TURNS * turn_s / max(call_s, 1e-9))))


class MemoryDeals:
    """When a process deals its memory again: before each segment of its rounds but the first.

    What a process draws once, where its arrays are, it then draws several times, and its figure is a median over these
    draws.
    """

    def __init__(self, plan: Plan, block: Block, result: ProcessResult, materials: Materials) -> None:
        self._plan, self._block, self._result = plan, block, result
        self._materials = materials
        self._deals_slowly = False

    def seed(self, turns: int) -> int | None:
        """Return what the next deal is drawn from; None where the next turn is taken on memory as it is."""
        if not self._is_dealt(turns):
            return None
        drawn = random.Random(f"{self._plan.seed} {self._block.number} {self._result.position} {turns}")
        return drawn.getrandbits(32)

    def record(self, measured: Measured, took_s: float) -> None:
        """Record a turn, which took so long with its deal; a slow deal is the last one."""
        if measured.dealt:
            self._result.dealt += 1
            turn_s = self._plan.measuring.seconds / self._plan.measuring.rounds
            self._deals_slowly = took_s - measured.elapsed_s > verdict.SEGMENT * turn_s

    def _is_dealt(self, turns: int) -> bool:
        """As found, memory stays as it was found."""
        rounds = turns - 1  # the first turn warms up
        between = rounds > 0 and rounds % verdict.SEGMENT == 0
        allowed = self._result.conditions == "controlled" and self._plan.limits.memory_bytes is None
        if not between or not allowed or self._deals_slowly or self._plan.device != "cpu":
            return False
        weights = self._materials.weights_file
        return weights.is_file() and weights.stat().st_size <= _MOST_DEALT_BYTES

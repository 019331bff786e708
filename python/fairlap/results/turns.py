"""How a contestant's processes shared the machine with those of the others."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.race.process_result import ProcessResult


def turns_of(processes: Sequence[ProcessResult]) -> str:
    """Such as "in 10 rounds", or "one after the other: ..." where some were."""
    apart = next((each.in_turn_because for each in processes if each.in_turn_because), "")
    if apart:
        return f"one after the other: {apart}"
    rounds = max((len(each.rounds_ns) for each in processes), default=0)
    return f"in {quantity_text.count(rounds, 'round')}" if rounds else "none: no process was measured"

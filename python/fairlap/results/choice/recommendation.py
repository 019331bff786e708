"""Which candidate to take: of those that qualify the one that no other beats, or which cannot be separated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlap.request.work import Objective
from fairlap.results.choice.choice import Reason
from fairlap.results.choice.front import Compared, dominates
from fairlap.results.decision.requirements import Status

_WORDS: Mapping[Objective, str] = {
    "time": "time of an item",
    "cost": "cost",
    "energy": "energy of an item",
    "memory": "peak memory",
    "size": "size of files",
}


@dataclass(frozen=True)
class Recommended:
    names: tuple[str, ...]
    reason: Reason
    message: str


def recommended(
    statuses: Mapping[str, Status], score: Compared, figure: Compared, minimise: Objective | None
) -> Recommended:
    """``figure`` compares what is minimised, or the time where nothing is.

    Minimised is that figure alone; the score only decides between candidates that are equivalent in it.
    """
    eligible = [name for name, status in statuses.items() if status == "yes"]
    if not eligible:
        return _none(statuses)
    unbeaten = tuple(
        name
        for name in eligible
        if not any(_beats(other, name, score, figure, minimise) for other in eligible if other != name)
    )
    if len(unbeaten) == 1:
        return Recommended(unbeaten, "recommended", _why(unbeaten[0], eligible, minimise))
    if not unbeaten:
        return Recommended((), "not_separated", "each candidate that qualifies is beaten by another one")
    listed = ", ".join(unbeaten)
    if minimise is not None:
        return Recommended(unbeaten, "not_separated", f"not separated in {_WORDS[minimise]}: {listed}")
    if _are_a_trade_off(unbeaten, score, figure):
        return Recommended(
            unbeaten, "trade_off", f"more score costs more time: {listed}; choose with --minimise and --require"
        )
    return Recommended(unbeaten, "not_separated", f"not shown which of these to prefer: {listed}")


def _beats(one: str, other: str, score: Compared, figure: Compared, minimise: Objective | None) -> bool:
    return dominates(one, other, (score, figure)) or (minimise is not None and figure(one, other) == "better")


def _are_a_trade_off(names: Sequence[str], score: Compared, figure: Compared) -> bool:
    """Whether each pair is shown to differ in both figures, in opposite directions."""
    return all(
        {score(a, b), figure(a, b)} == {"better", "worse"} for place, a in enumerate(names) for b in names[place + 1 :]
    )


def _why(name: str, eligible: Sequence[str], minimise: Objective | None) -> str:
    if len(eligible) == 1:
        return f"{name}: the only candidate that is shown to qualify"
    if minimise is None:
        return f"{name}: better than each other candidate in score or time, and no worse in the other"
    return f"{name}: the least {_WORDS[minimise]} of {len(eligible)} candidates that qualify"


def _none(statuses: Mapping[str, Status]) -> Recommended:
    open_ = [name for name, status in statuses.items() if status == "unknown"]
    if open_:
        return Recommended((), "requirements_unknown", f"unknown whether these qualify: {', '.join(open_)}")
    return Recommended((), "none_qualifies", "no candidate qualifies")

"""The Pareto front of two figures, by what is shown: which candidates are on it, may be on it, or are dominated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["better", "worse", "equivalent", "inconclusive"]
Compared = Callable[[str, str], Outcome]
"""The first candidate against the second one, in one figure."""
Position = Literal["on the front", "may be on it", "dominated"]

_NO_WORSE = ("better", "equivalent")


@dataclass(frozen=True)
class Place:
    position: Position
    dominated_by: tuple[str, ...] = ()
    may_be_dominated_by: tuple[str, ...] = ()


def dominates(one: str, other: str, figures: Sequence[Compared]) -> bool:
    """Whether it is shown to be better in one figure and no worse in the others; equivalent is no worse."""
    outcomes = [figure(one, other) for figure in figures]
    return "better" in outcomes and all(each in _NO_WORSE for each in outcomes)


def places(names: Sequence[str], figures: Sequence[Compared]) -> dict[str, Place]:
    """Place each candidate among the others."""
    return {name: _place(name, [each for each in names if each != name], figures) for name in names}


def _place(name: str, others: Sequence[str], figures: Sequence[Compared]) -> Place:
    by = tuple(other for other in others if dominates(other, name, figures))
    if by:
        return Place("dominated", by)
    open_ = tuple(other for other in others if not _is_safe_from(name, other, figures))
    return Place("may be on it" if open_ else "on the front", (), open_)


def _is_safe_from(name: str, other: str, figures: Sequence[Compared]) -> bool:
    """Whether the other one is shown not to dominate it."""
    outcomes = [figure(name, other) for figure in figures]
    return "better" in outcomes or all(each == "equivalent" for each in outcomes)

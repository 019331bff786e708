"""Who is unbeaten, who won, and places that print ties as ties."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.verdict.blocks import BadInput, BlockTable
from fairlap.verdict.comparison import Comparison, Verdict
from fairlap.verdict.warnings import CircularOrder, StatisticalWarning


@dataclass(frozen=True)
class Place:
    """The places a contestant may hold: behind all who beat it, ahead of all it beats."""

    contestant: str
    best: int
    worst: int
    unbeaten: bool

    @property
    def label(self) -> str:
        """The place to print; "2=" if another contestant may hold it as well."""
        return f"{self.best}" if self.best == self.worst else f"{self.best}="


@dataclass(frozen=True)
class Standing:
    """The places on one workload, the unbeaten, and the winner if there is one."""

    places: tuple[Place, ...]
    unbeaten: tuple[str, ...]
    winner: str | None
    detectable_effect: float
    warnings: tuple[StatisticalWarning, ...]

    def position(self, contestant: str) -> int:
        """Find the line of a contestant where all are listed; those that are not ranked come after the others."""
        names = [place.contestant for place in self.places]
        return names.index(contestant) if contestant in names else len(names)


def standing(
    table: BlockTable, comparisons: Sequence[Comparison], shown: Mapping[str, float] | None = None
) -> Standing:
    """Rank the contestants of one table by what its comparisons show and by nothing else.

    The comparisons are those of all pairs, or of one contestant with each other. A winner has to beat everyone. Between
    contestants not shown apart the order is that of the times that are ``shown`` for them, by default the medians of
    the table, and the labels show that it means nothing.
    """
    names = table.contestants
    own = [c for c in comparisons if c.workload == table.workload and c.metric == table.metric]
    of_the_fastest = len(own) == len(names) - 1 and bool(set.intersection(*({c.a, c.b} for c in own)))
    if not of_the_fastest and len(own) != len(names) * (len(names) - 1) // 2:
        found = f"{table.workload or 'table'}: {len(own)} comparisons"
        raise BadInput(f"{found} do not cover {len(names)} contestants; judge the same table")
    ahead: dict[str, set[str]] = {name: set() for name in names}
    for comparison in own:
        if comparison.verdict is Verdict.FASTER:
            ahead[comparison.b].add(comparison.a)
        elif comparison.verdict is Verdict.SLOWER:
            ahead[comparison.a].add(comparison.b)
    behind = {name: sum(name in others for others in ahead.values()) for name in names}
    if shown is None:
        sign = 1.0 if table.metric.better == "lower" else -1.0
        shown = {name: sign * float(np.median(table.log_figures_of(name))) for name in names}
    ordered = sorted(names, key=lambda name: (len(ahead[name]), -behind[name], shown[name]))
    places = tuple(Place(name, 1 + len(ahead[name]), len(names) - behind[name], not ahead[name]) for name in ordered)
    unbeaten = tuple(place.contestant for place in places if place.unbeaten)
    winner = unbeaten[0] if unbeaten and behind[unbeaten[0]] == len(names) - 1 else None
    return Standing(
        places=places,
        unbeaten=unbeaten,
        winner=winner,
        detectable_effect=max(comparison.detectable_effect for comparison in own),
        warnings=() if unbeaten else (CircularOrder(),),
    )

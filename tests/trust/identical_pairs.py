"""Pairs of identical contestants out of one race: how many of them a verdict calls different."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from itertools import combinations

from fairlap import verdict
from fairlap.verdict import Verdict
from fairlap.verdict.false_positive_rate import false_positives


def called_different(table: verdict.BlockTable) -> list[verdict.Comparison]:
    """Of all pairs, each judged as if there were no others."""
    found = []
    for pair in combinations(range(len(table.contestants)), 2):
        names = tuple(table.contestants[place] for place in pair)
        alone = replace(table, contestants=names, log_figures=table.log_figures[:, list(pair)])
        [comparison] = verdict.judge([alone])
        if comparison.verdict in (Verdict.FASTER, Verdict.SLOWER):
            found.append(comparison)
    return found


@dataclass
class IdenticalPairs:
    """What is counted over races."""

    pairs: int = 0
    claims: int = 0

    def count(self, race: int, table: verdict.BlockTable) -> None:
        different = called_different(table)
        self.pairs += len(table.contestants) * (len(table.contestants) - 1) // 2
        self.claims += len(different)
        for each in different:
            print(f"race {race}: {verdict.sentence(each)}", file=sys.stderr)
        print(f"race {race}: {self.claims} of {self.pairs} pairs called different", file=sys.stderr, flush=True)

    def conclude(self) -> int:
        """The exit status."""
        if not self.pairs:
            return 1
        found = false_positives(self.claims, self.pairs)
        share = self.claims / self.pairs
        print(f"{self.claims} of {self.pairs} pairs called different, {share:.1%} [{found.low:.1%}, {found.high:.1%}]")
        return 0 if found.passed else 1

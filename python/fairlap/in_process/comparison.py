"""What comparing callables within one process showed, and how a person reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairlap import verdict
from fairlap.engine import digits

ONE_PROCESS = "All blocks were one process; another may have drawn another memory layout, so compare processes too."


@dataclass(frozen=True)
class CallableRow:
    """One callable's median of each block, and the middle of those with its interval."""

    name: str
    block_medians_ns: tuple[float, ...]
    figure: verdict.ContestantFigure
    warnings: tuple[str, ...]  # of the engine, from its first measurement

    @property
    def median_ns(self) -> float:
        return float(np.median(self.block_medians_ns))


@dataclass(frozen=True)
class InProcessComparison:
    """The fastest first. Who cannot be judged has a row, and stands in no comparison."""

    rows: tuple[CallableRow, ...]
    comparisons: tuple[verdict.Comparison, ...]
    standing: verdict.Standing | None
    blocks: int
    seconds: float
    seed: int
    notices: tuple[str, ...]
    interrupted: bool

    def between(self, a: str, b: str) -> verdict.Comparison:
        """The verdict told from a's side."""
        for each in self.comparisons:
            if {each.a, each.b} == {a, b}:
                return each if each.a == a else each.reversed()
        judged = sorted({name for each in self.comparisons for name in (each.a, each.b)})
        raise KeyError(f"{a} and {b} are not compared; compared are: {', '.join(judged) or 'none'}")

    def __str__(self) -> str:
        times = f"{digits.counted(self.blocks, 'block')} of {self.seconds:g} s each"
        lines = [f"{len(self.rows)} callables within one process, {times}, orders drawn with seed {self.seed}"]
        places = {place.contestant: place.label for place in self.standing.places} if self.standing else {}
        width = max((len(row.name) for row in self.rows), default=0)
        for row in self.rows:
            times = f"{row.median_ns / self.rows[0].median_ns:.2f}x"
            lines.append(f"  {places.get(row.name, '-'):>3} {row.name:<{width}}  {_figure(row)}  {times}")
            lines += [f"      {' ' * width} ! {text}" for text in row.warnings]
        first = self.standing.places[0].contestant if self.standing else ""
        lines += [f"  {verdict.sentence(each)}" for each in self.comparisons if first in (each.a, each.b)]
        lines += [f"  ! {notice}" for notice in self.notices]
        return "\n".join([*lines, f"  {ONE_PROCESS}"])


def judged(
    rows: Sequence[CallableRow], left_out: Mapping[str, str], *, margin: float, alpha: float
) -> tuple[tuple[verdict.Comparison, ...], verdict.Standing | None, str]:
    """Verdicts between all that may be judged, or why there are none."""
    may = {row.name: row.block_medians_ns for row in rows if row.name not in left_out}
    if len(may) < 2:
        return (), None, f"no verdict: {digits.counted(len(may), 'callable')} can be judged, and a comparison needs two"
    blocks = len(next(iter(may.values())))
    if blocks < 2:
        return (), None, f"no verdict: {digits.counted(blocks, 'block')} complete; two are needed, and six to claim"
    table = verdict.block_table(may, evidence="within one process")
    comparisons = verdict.judge([table], margin=margin, alpha=alpha)
    return comparisons, verdict.standing(table, comparisons), ""


def _figure(row: CallableRow) -> str:
    figure = row.figure
    if figure.value is None:
        return verdict.modes_sentence("", figure.modes, "ns").strip()
    if not figure.low or figure.high is None or np.isinf(figure.high):
        return digits.duration(row.median_ns)
    return digits.interval(figure.value, figure.low, figure.high)

"""What a comparison of callables that are not trusted returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.scenarios.callables.comparison_document import PrintedFigure, printed_pair
from fairlap.scenarios.callables.result import comparison_between
from fairlap.scenarios.callables.untrusted.document import JudgedCallable, UntrustedDocument
from fairlap.scenarios.callables.untrusted.exclusion import Exclusion


@dataclass(frozen=True)
class UntrustedRow:
    """One callable that may be judged, with its time of a call in each block."""

    name: str
    block_ns: tuple[float, ...]
    figure: verdict.ContestantFigure
    answers_checked: int
    warnings: tuple[Notice, ...] = ()

    @property
    def median_ns(self) -> float:
        return float(np.median(self.block_ns))

    def printed(self, *, raw: bool) -> JudgedCallable:
        figure = self.figure
        return JudgedCallable(
            name=self.name,
            median_ns=self.median_ns,
            figure=PrintedFigure(figure.value, figure.low, figure.high),
            answers_checked=self.answers_checked,
            warnings=self.warnings,
            block_ns=self.block_ns if raw else msgspec.UNSET,
        )


@dataclass(frozen=True)
class UntrustedComparison:
    """Rows are sorted by rank, then by time; ``excluded`` has the others, with their codes.

    ``floor_ns`` is what a call costs that does nothing but answer, with its share of the ring. It is subtracted from
    every figure, unless some callable takes less than twice as long: then no figure is without it, and the rows of
    those have a warning.
    """

    rows: tuple[UntrustedRow, ...]
    comparisons: tuple[verdict.Comparison, ...]
    standing: verdict.Standing | None
    excluded: Mapping[str, Exclusion]
    floor_ns: float | None  # of a comparison without a block none is known
    ring_ns: float | None  # of a sample of one empty call
    floor_subtracted: bool
    calls_per_sample: int
    blocks: int
    elapsed_s: float
    seed: int
    ended_early: str
    why_no_verdict: str
    device: str = "cpu"
    interrupted: bool = False

    def between(self, a: str, b: str) -> verdict.Comparison:
        """Find the comparison with ``a`` as its subject."""
        reasons = {name: f"{name} was excluded: {each.reason}" for name, each in self.excluded.items()}
        reasons |= {row.name: "" for row in self.rows}
        return comparison_between(self.comparisons, reasons, a, b, self.why_no_verdict)

    def document(self, *, raw: bool = False) -> UntrustedDocument:
        """For JSON; with ``raw`` also the time of each block."""
        return UntrustedDocument(
            rows=[each.printed(raw=raw) for each in self.rows],
            comparisons=[printed_pair(each) for each in self.comparisons],
            places=self.places,
            excluded=dict(self.excluded),
            floor_ns=self.floor_ns,
            ring_ns=self.ring_ns,
            floor_subtracted=self.floor_subtracted,
            calls_per_sample=self.calls_per_sample,
            blocks=self.blocks,
            elapsed_s=self.elapsed_s,
            seed=self.seed,
            device=self.device,
            ended_early=self.ended_early,
            why_no_verdict=self.why_no_verdict,
            interrupted=self.interrupted,
        )

    @property
    def places(self) -> dict[str, str]:
        return {place.contestant: place.label for place in self.standing.places} if self.standing else {}

    def __str__(self) -> str:
        count = quantity_text.count(len(self.rows) + len(self.excluded), "callable")
        blocks = quantity_text.count(self.blocks, "block")
        where = "" if self.device == "cpu" else f" on {self.device}"
        took = quantity_text.seconds(self.elapsed_s)
        lines = [f"{count}, each in its sandbox{where}, {blocks} in {took}, seed {self.seed}"]
        places = self.places
        width = max((len(name) for name in (*(row.name for row in self.rows), *self.excluded)), default=0)
        for row in self.rows:
            times = quantity_text.times(self._ratio_to_first(row))
            checked = quantity_text.count(row.answers_checked, "answer")
            relations = verdict.relations(self.standing, self.comparisons, row.name)
            line = f"  {places.get(row.name, '-'):>3} {row.name:<{width}}  {_figure(row)}  {times}, {checked} right"
            lines.append(f"{line}  {relations}".rstrip())
            lines += [f"      {' ' * width} ! {warning.text} [{warning.code}]" for warning in row.warnings]
        for name, why in self.excluded.items():
            lines.append(f"    x {name:<{width}}  excluded: {why.reason} [{why.code}]")
        first = self.standing.places[0].contestant if self.standing else ""
        lines += [f"  {verdict.sentence(each)}" for each in self.comparisons if first in (each.a, each.b)]
        lines += [f"  {self.ended_early}"] if self.ended_early else []
        lines += [f"  ! no verdict: {self.why_no_verdict}"] if self.why_no_verdict else []
        return "\n".join([*lines, *self._floor_lines()])

    def _ratio_to_first(self, row: UntrustedRow) -> float:
        """Take that of their comparison, which is over pairs of blocks, so that the table agrees with the sentences."""
        first = self.rows[0]
        if not any({each.a, each.b} == {row.name, first.name} for each in self.comparisons):
            return row.median_ns / first.median_ns
        return self.between(row.name, first.name).ratio

    def _floor_lines(self) -> list[str]:
        if self.floor_ns is None or self.ring_ns is None:
            return []
        calls = quantity_text.count(self.calls_per_sample, "call")
        is_in = "subtracted" if self.floor_subtracted else "in every time, since some calls are not much longer"
        floor, ring = (quantity_text.duration(each) for each in (self.floor_ns, self.ring_ns))
        return [f"  Floor {floor}, {is_in}: an empty call, with its share of a ring ({ring}) for {calls}."]

    __repr__ = __str__


def _figure(row: UntrustedRow) -> str:
    return quantity_text.duration_interval(row.figure.value or row.median_ns, row.figure.low or None, row.figure.high)

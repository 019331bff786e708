"""What ``fairlap.compare`` returns: a row for each callable, and the comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import msgspec
import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.scenarios.callables.answers.result import AnswersChecked
from fairlap.scenarios.callables.comparison_document import (
    ComparedCallable,
    ComparisonDocument,
    PrintedFigure,
    printed_answers,
    printed_pair,
)
from fairlap.scenarios.callables.turns import WORKS_ON
from fairlap.suggestions import not_one_of

ONE_PROCESS = (
    "Another process may have another memory layout and show another order. To compare over several processes, run "
    "`fairlap compare callable --on python:call=MODULE.FUNCTION,python:call=MODULE.OTHER`."
)


class NotCompared(InvalidRequest, KeyError):
    """Two callables of which one is unknown, or that were not compared with each other."""

    __str__ = Exception.__str__  # a KeyError shows its text in quotes


def comparison_between(
    comparisons: Sequence[verdict.Comparison], reasons: Mapping[str, str], a: str, b: str, why_none: str
) -> verdict.Comparison:
    """Find the comparison with ``a`` as its subject. ``reasons`` are those of excluded ones, empty of all others.

    Raises NotCompared with the reason where there is none.
    """
    for each in comparisons:
        if {each.a, each.b} == {a, b}:
            return each if each.a == a else each.reversed()
    if (unknown := next((name for name in (a, b) if name not in reasons), None)) is not None:
        raise NotCompared(f"no callable is named so: {not_one_of(unknown, reasons)}")
    itself = "a callable is not compared with itself" if a == b else ""
    raise NotCompared(itself or reasons[a] or reasons[b] or why_none or f"{a} and {b} were not compared")


@dataclass(frozen=True)
class CallableRow:
    """One callable: its median in each block, and their centre with its interval."""

    name: str
    block_medians_ns: tuple[float, ...]
    figure: verdict.ContestantFigure
    warnings: tuple[Notice, ...]  # of its first measurement

    @classmethod
    def of(cls, name: str, medians_ns: Sequence[float], warnings: Sequence[Notice]) -> CallableRow:
        figure = verdict.contestant_figure(np.log(medians_ns), one_process=True)
        return cls(name, tuple(medians_ns), figure, tuple(warnings))

    @property
    def median_ns(self) -> float:
        return float(np.median(self.block_medians_ns))

    @property
    def text(self) -> str:
        """``10.02 µs [9.98, 10.07]``."""
        return quantity_text.duration_interval(
            self.figure.value or self.median_ns, self.figure.low or None, self.figure.high
        )

    def printed(self, *, raw: bool) -> ComparedCallable:
        figure = self.figure
        return ComparedCallable(
            name=self.name,
            median_ns=self.median_ns,
            figure=PrintedFigure(figure.value, figure.low, figure.high),
            warnings=self.warnings,
            block_medians_ns=self.block_medians_ns if raw else msgspec.UNSET,
        )


@dataclass(frozen=True)
class InProcessComparison:
    """Rows are sorted by rank, then by time, those that are not ranked last.

    A callable that cannot be judged has a row, but is in no comparison.
    ``ended_early`` and ``why_no_verdict`` are empty where they do not apply; ``excluded`` gives the reason by name.
    """

    rows: tuple[CallableRow, ...]
    comparisons: tuple[verdict.Comparison, ...]
    standing: verdict.Standing | None
    blocks: int
    seconds: float  # of a callable in a block
    elapsed_s: float
    seed: int
    baseline: str
    until_decided: bool
    interrupted: bool
    ended_early: str
    excluded: Mapping[str, str]
    why_no_verdict: str
    answers: AnswersChecked
    no_verdict_code: str = ""
    regime: str = ""  # of a GPU; empty for neither rest nor load

    def between(self, a: str, b: str) -> verdict.Comparison:
        """Find the comparison with ``a`` as its subject."""
        reasons = {**{row.name: "" for row in self.rows}, **self.excluded}
        return comparison_between(self.comparisons, reasons, a, b, self.why_no_verdict)

    def to_dict(self, *, raw: bool = False) -> dict[str, Any]:
        """Plain values for JSON; with ``raw`` also the median of each block."""
        plain: dict[str, Any] = msgspec.to_builtins(self.document(raw=raw))
        return plain

    def document(self, *, raw: bool = False) -> ComparisonDocument:
        """As ``fairlap time A B --json`` prints it; with ``raw`` also the median of each block."""
        return ComparisonDocument(
            rows=[each.printed(raw=raw) for each in self.rows],
            comparisons=[printed_pair(each) for each in self.comparisons],
            places={place.contestant: place.label for place in self.standing.places} if self.standing else {},
            blocks=self.blocks,
            seconds=self.seconds,
            elapsed_s=self.elapsed_s,
            seed=self.seed,
            baseline=self.baseline,
            until_decided=self.until_decided,
            interrupted=self.interrupted,
            ended_early=self.ended_early,
            excluded=dict(self.excluded),
            why_no_verdict=self.why_no_verdict,
            no_verdict_code=self.no_verdict_code,
            regime=self.regime,
            answers=printed_answers(self.answers),
        )

    def __str__(self) -> str:
        lines = [self.setting]
        width = max((len(row.name) for row in self.rows), default=0)
        of_all = self.warnings_of_all
        for row in self.rows:
            place, figure, times, relations = self.cells(row)
            line = f"  {place or '-':>3} {row.name:<{width}}  {figure}  {times}  {relations}"
            lines.append(line.rstrip())
            own = [warning for warning in row.warnings if warning not in of_all]
            lines += [f"      {' ' * width} ! {warning.text} [{warning.code}]" for warning in own]
        lines += [f"  ! {warning.text} [{warning.code}]" for warning in of_all]
        first = self.baseline or (self.standing.places[0].contestant if self.standing else "")
        lines += [f"  {verdict.sentence(each)}" for each in self.comparisons if first in (each.a, each.b)]
        lines += [f"  {self.ended_early}"] if self.ended_early else []
        lines += [f"  ! {each}" for each in self.reasons]
        return "\n".join([*lines, *(f"  {each}" for each in self.closing)])

    __repr__ = __str__  # a dataclass would list every sample

    def _repr_html_(self) -> str:
        """Show it in a notebook; the room that draws it is above this one."""
        drawn: str = resolve_name("fairlap.scenarios.callables.render.in_notebook:html_of")(self)
        return drawn

    @property
    def setting(self) -> str:
        each = f"{quantity_text.duration(self.seconds * 1e9)} each"
        blocks = f"{quantity_text.count(self.blocks, 'block')} of {each} in {quantity_text.seconds(self.elapsed_s)}"
        regime = f", {self.regime}" if self.regime else ""
        return f"{len(self.rows)} callables within one process, {blocks}{regime}, seed {self.seed}"

    def cells(self, row: CallableRow) -> tuple[str, str, str, str]:
        """Its place, time, times the first, and what it is against those above it; of a place it lacks, nothing."""
        places = {each.contestant: each.label for each in self.standing.places} if self.standing else {}
        wrong = row.name in self.answers.wrong
        times = "not ranked" if wrong else quantity_text.times(row.median_ns / self.rows[0].median_ns)
        relations = verdict.relations(self.standing, self.comparisons, row.name)
        return places.get(row.name, ""), row.text, times, relations

    @property
    def warnings_of_all(self) -> list[Notice]:
        """Those that every one of several callables has, such as one of the inputs."""
        first, *others = [row.warnings for row in self.rows] or [()]
        return [each for each in first if others and all(each in warnings for warnings in others)]

    @property
    def reasons(self) -> list[str]:
        """Why callables are in no comparison, with codes, what no block could show, and why there is no verdict."""
        wrong = self.answers.wrong
        codes = {name: wrong[name].code if name in wrong else WORKS_ON for name in self.excluded}
        found = [f"{text} [{codes[name]}]" for name, text in self.excluded.items()]
        for each in self.comparisons:
            unseen = [f"{one} [{one.code}]" for one in each.warnings if isinstance(one, verdict.NoSpread)]
            found += [f"{each.a} and {each.b}: {text}" for text in unseen]
        return [*found, f"no verdict: {self.why_no_verdict}"] if self.why_no_verdict else found

    @property
    def closing(self) -> tuple[str, str]:
        """What is known of the answers, and what one process leaves open."""
        checked = self.answers.text
        return f"{checked[0].upper()}{checked[1:]}.", ONE_PROCESS

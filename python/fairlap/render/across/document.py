"""Runs side by side as a document: a section for each work, speed against cost, what was decided and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Literal

import msgspec

from fairlap import quantity_text
from fairlap.history.across.decisions import decisions_of
from fairlap.history.across.differing import Differing, what_differs
from fairlap.history.across.flips import Flip, flips_of
from fairlap.history.across.frontier import with_domination
from fairlap.history.across.lines import FIGURES, OF_SCENARIOS, Line, entries_of
from fairlap.printed_document import PrintedDocument
from fairlap.render.across.chart import pareto_chart
from fairlap.render.document import Document, Picture, Records, Section, Table
from fairlap.render.text.decision import decision_lines
from fairlap.request.names import with_version
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.decision.decision import Decision
from fairlap.results.decision.estimate_text import estimate_text, interval_text
from fairlap.results.decision.question import Question
from fairlap.results.prices import Price
from fairlap.store.stored_rows import RowsOfRun

NO_CLAIM = (
    "The runs did not alternate, so no verdict compares them: what differs between them is listed, and any of it may "
    "be the cause."
)


class RunsAcross(PrintedDocument, frozen=True, tag="fairlap.across/1"):
    note: str
    lines: list[Line]
    differences: list[Differing]
    decisions: list[Decision] | msgspec.UnsetType = msgspec.UNSET  # where requirements or a use were given
    flips: list[Flip] = msgspec.field(default_factory=list)


def document_of(
    runs: Sequence[RowsOfRun],
    prices: Mapping[str, Price] | None = None,
    grams_per_joule: Mapping[str, float] | None = None,
    question: Question | None = None,
) -> Document:
    """Prices and the grid's carbon are by the name that the user gave a run."""
    entries = with_domination(entries_of(runs, prices or {}, grams_per_joule or {}))
    lines, differing = [each.line for each in entries], what_differs(runs, entries)
    decisions, flips = decisions_of(entries, question) if question is not None else [], flips_of(entries)
    names = Line.__struct_fields__
    picture = Picture("What runs ranked by against its cost", partial(pareto_chart, lines))
    return Document(
        title="Runs side by side",
        facts=(NO_CLAIM,),
        sections=[
            *(_section(list(own)) for _, own in groupby(lines, attrgetter("done"))),
            Section("Where rankings flip", notes=[each.text for each in flips]),
            Section("Speed against cost", picture=picture if any(line.judged_cost for line in lines) else None),
            Section("Decision", notes=[line for each in decisions for line in decision_lines(each)]),
            _differences([run.run for run in runs], differing),
        ],
        data=RunsAcross(NO_CLAIM, lines, differing, decisions or msgspec.UNSET, flips),
        records=Records(names, [[getattr(line, name) for name in names] for line in lines], FIGURES),
        draw=partial(pareto_chart, lines),
    )


def _section(lines: Sequence[Line]) -> Section:
    work = lines[0].work
    judged = list(dict.fromkeys(line.judged_by for line in lines))
    columns = [each for each in _COLUMNS if each is not _TIME_OF_A_CALL or not _are_ranked_by_calls(lines)]
    rows = [
        [
            *(with_version(line.contestant, line.version), line.run, line.machine),
            *(_judged(by, line) for by in judged),
            *(column.cell(line) for column in columns),
        ]
        for line in lines
    ]
    heads = ("contestant", "run", "machine", *judged, *(column.head for column in columns))
    notes = [*_trouble(lines), *_reasons(lines)]
    shown = Table("Contestants of all runs", heads, rows).without_empty_columns(after=3 + len(judged))
    return Section(work, [shown], notes)


def _are_ranked_by_calls(lines: Sequence[Line]) -> bool:
    return all(line.judged is None or line.judged.value == line.time_ns.value for line in lines if line.time_ns)


@dataclass(frozen=True)
class _Column:
    head: str
    name: str  # of the line's field
    money: Literal["", "in", "per"] = ""  # in the currency of the line, or for a unit of it

    def cell(self, line: Line) -> str:
        """Empty where the figure is absent."""
        found: Estimate | None = getattr(line, self.name)
        if found is None:
            return ""
        if self.money:
            return interval_text(found, f" {line.currency}" if self.money == "in" else f"/{line.currency}")
        return estimate_text(self.name, found)


def _judged(by: str, line: Line) -> str:
    """Write the figure that the line was ranked by, if it is this one."""
    found = line.judged
    if found is None or line.judged_by != by:
        return ""
    return quantity_text.figure(found.value, line.judged_unit, found.low, found.high)


_OF_SCENARIOS = [
    _Column(each.about.across, each.field, "in" if each.about.is_money else "")
    for each in OF_SCENARIOS
    if each.about.across
]
_TIME_OF_A_CALL = _Column("time of a call", "time_ns")
_COLUMNS = (
    _TIME_OF_A_CALL,
    _Column("p99", "latency_p99_ns"),
    _Column("items/s", "throughput_per_s"),
    _Column("peak memory", "peak_memory_bytes"),
    _Column("cost/1000 items", "cost_per_1000_items", "in"),
    _Column("items per money", "items_per_unit_of_money", "per"),
    *_OF_SCENARIOS,
    _Column("energy/item", "energy_per_item_j"),
    _Column("power", "mean_power_w"),
    _Column("items/s/W", "items_per_s_per_w"),
    _Column("CO2/1000 items", "carbon_per_1000_items_g"),
)


def _trouble(lines: Sequence[Line]) -> Iterator[str]:
    """Name the lines whose outcome has a message, and those that another line is better than in both."""
    for line in lines:
        if line.message:
            yield f"{line.contestant} in {line.run}: {line.message}"
    for line in lines:
        if line.dominated_by:
            better = ", ".join(line.dominated_by)
            yield f"{line.contestant} in {line.run}: time and cost are both above those of {better}"


def _reasons(lines: Sequence[Line]) -> list[str]:
    """Why figures are absent: each reason once, with the lines that it is about where it is not about all."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for column in (_Column(line.judged_by, "judged"), *_COLUMNS):
            why = line.absent.get(column.name)
            if why is not None and column not in _OF_SCENARIOS:  # most are of races of another kind
                found.setdefault((column.head, why), []).append(f"{line.contestant} in {line.run}")
    texts: dict[tuple[str, str], list[str]] = {}
    for (head, why), whose in found.items():
        about = "" if len(whose) == len(lines) else f" of {', '.join(whose)}"
        texts.setdefault((about, why), []).append(head)
    return [f"no {', '.join(heads)}{about}: {why}" for (about, why), heads in texts.items()]


def _differences(runs: Sequence[str], differing: Sequence[Differing]) -> Section:
    """List each fact; a run without a contestant has neither its version nor its settings."""
    if not differing:
        return Section("What differs", notes=["no known difference"])
    rows = [[each.about, each.what, *(each.values.get(run, "") for run in runs)] for each in differing]
    return Section(
        "What differs", [Table("Facts of the runs", ["about", "what", *(f"in {run}" for run in runs)], rows)]
    )

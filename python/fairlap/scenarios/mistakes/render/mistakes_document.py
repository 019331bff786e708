"""Planted mistakes as a document: counts of each contestant, and what became of each mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.render.charts.parts.chart import spec_of
from fairlap.render.charts.parts.libraries import altair, drawn
from fairlap.render.charts.parts.look import Look
from fairlap.render.document import Document, Picture, Records, Section, Table
from fairlap.request.names import with_version
from fairlap.scenarios.mistakes.catalogue import KINDS
from fairlap.scenarios.mistakes.results.mistakes_result import (
    REPORTED,
    MistakeRow,
    MistakesOfContestant,
    MistakesResult,
    Outcome,
)

_CELL_WIDTH, _CELL_HEIGHT = 110, 22
_ORDER: tuple[Outcome, ...] = ("error", "warning", "silent", "works", "crash", "hang")


def chart_of(result: MistakesResult, look: Look) -> str:
    alt = altair()
    points: list[dict[str, Any]] = [
        {"contestant": row.contestant, "mistake": row.mistake, "outcome": row.outcome}
        for row in result.rows
        if row.outcome != "absent"
    ]
    if not points:
        raise InvalidRequest("there is nothing to draw: no contestant ran a mistake", code="E_CONTESTANT")
    used = [each for each in _ORDER if any(point["outcome"] == each for point in points)]
    colours = dict(zip(_ORDER, look.colours(len(_ORDER)), strict=True))
    colour = alt.Color(
        "outcome:N",
        scale=alt.Scale(domain=used, range=[colours[each] for each in used]),
        legend=alt.Legend(title=None, orient="top"),
    )
    names = list(dict.fromkeys(point["mistake"] for point in points))
    contestants = [each.contestant for each in result.contestants]
    x = alt.X("contestant:N", sort=contestants, axis=alt.Axis(title=None, orient="top", labelAngle=0))
    y = alt.Y("mistake:N", sort=names, axis=alt.Axis(title=None, labelLimit=220))
    base = alt.Chart(alt.Data(values=points)).encode(x=x, y=y)
    marks = base.mark_point(size=140, filled=True, opacity=1).encode(color=colour, shape=_shape(used))
    chart = marks.properties(width=_CELL_WIDTH * len(contestants), height=_CELL_HEIGHT * len(names))
    return drawn(spec_of(chart), look)


def _shape(used: list[Outcome]) -> Any:
    """Also by shape, for those who do not tell the colours apart."""
    alt = altair()
    shapes = dict(zip(_ORDER, ("circle", "triangle-up", "cross", "square", "diamond", "triangle-down"), strict=True))
    return alt.Shape("outcome:N", scale=alt.Scale(domain=used, range=[shapes[each] for each in used]))


_HEADS = ("contestant", "mistakes", "error", "warning", "silent", "works", "lost")
_NAMED = ("line", "both sides", "operator", "part", "time", "lines")
_FEWEST_BLOCKS = 6  # of an interval
_HOW_TO_READ = (
    "A cell has what a report names: the user's line; both sides, such as two shapes, or one, or the sizes that do not "
    "fit; the operator; the part, as the user named it."
)


def document_of(result: MistakesResult) -> Document:
    return Document(
        title="How mistakes are reported",
        facts=(_about(result),),
        sections=[
            _summary(result),
            _chart(result),
            *(_kind(result, kind) for kind in KINDS),
            Section("Notes", notes=list(_notes(result))),
        ],
        data=result,
        records=_records(result),
        draw=partial(chart_of, result),
    )


def _about(result: MistakesResult) -> str:
    count = len({row.mistake for row in result.rows})
    blocks = quantity_text.count(result.blocks, "block")
    few = "" if result.blocks >= _FEWEST_BLOCKS else " Intervals of times take six blocks."
    return f"{quantity_text.count(count, 'planted mistake')}, {blocks}. {_HOW_TO_READ}{few}"


def _summary(result: MistakesResult) -> Section:
    rows = [_summary_cells(each) for each in result.contestants]
    shown = Table("What is reported", (*_HEADS, *_NAMED), rows).without_empty_columns(after=2)
    return Section("Reported, and what reports name", [shown] if rows else [])


def _summary_cells(found: MistakesOfContestant) -> list[str]:
    counts = [found.outcomes.get(outcome, 0) for outcome in ("error", "warning", "silent", "works")]
    lost = found.outcomes.get("crash", 0) + found.outcomes.get("hang", 0)
    pairs = (found.line, found.both, found.operator, found.part)
    return [
        with_version(found.contestant, found.version),
        str(found.planted),
        *(str(count) if count else "" for count in (*counts, lost)),
        *(f"{named}/{known}" if known else "" for named, known in pairs),
        "" if found.report_s is None else quantity_text.seconds(found.report_s),
        "" if found.printed_lines is None else f"{found.printed_lines:.0f}",
    ]


def _chart(result: MistakesResult) -> Section:
    picture = Picture("What became of each mistake in each framework", partial(chart_of, result))
    return Section("Outcomes", picture=picture if result.contestants else None)


def _kind(result: MistakesResult, kind: str) -> Section:
    """Leave out mistakes that no contestant can make; notes say why."""
    contestants = [each.contestant for each in result.contestants]
    made = [row for row in result.rows if row.kind == kind and row.outcome != "absent"]
    names = list(dict.fromkeys(row.mistake for row in made))
    by_cell = {(row.mistake, row.contestant): row for row in result.rows}
    rows = [[name, *(_cell(by_cell[name, each]) for each in contestants)] for name in names]
    table = Table(f"Mistakes of {kind}", ("mistake", *contestants), rows)
    return Section(kind.capitalize(), [table] if rows and contestants else [])


def _cell(row: MistakeRow) -> str:
    if row.outcome == "absent":
        return ""
    words = list(_named_words(row))
    return f"{row.outcome}: {', '.join(words)}" if words else row.outcome


def _named_words(row: MistakeRow) -> Iterator[str]:
    named = row.named
    if named.line:
        yield "line"
    if named.both:
        yield "both" if named.of_sides > 1 else "cause"
    elif named.sizes:
        yield "sizes"
    elif named.sides:
        yield "one"
    if named.operator:
        yield "operator"
    if named.part:
        yield "part"


def _notes(result: MistakesResult) -> Iterator[str]:
    for name, why in result.failures.items():
        yield f"{name}: {why}"
    for row in result.rows:
        if row.outcome in ("crash", "hang"):
            yield f"{row.contestant}, {row.mistake}: {row.message}"
        if row.differs:
            yield f"{row.contestant}, {row.mistake}: outcomes differ between processes; the most frequent one is shown"
    absent: dict[str, list[str]] = {}
    for row in result.rows:
        if row.absent:
            absent.setdefault(f"{row.contestant} has no {{}}: {row.absent}", []).append(row.mistake)
    for text, names in absent.items():
        yield text.format(", ".join(names))


def _records(result: MistakesResult) -> Records:
    names = (
        *("contestant", "version", "kind", "mistake", "outcome", "raised", "line_named", "sides_named", "sides"),
        *("sizes_named", "operator_named", "part_named", "report_s", "printed_lines", "message", "absent"),
    )
    return Records(names, [_values(row) for row in result.rows], ("report_s",))


def _values(row: MistakeRow) -> Sequence[object]:
    named = row.named
    return [
        *(row.contestant, row.version, row.kind, row.mistake, row.outcome, row.raised, named.line, named.sides),
        named.of_sides if row.outcome in REPORTED else None,
        *(named.sizes, named.operator, named.part, row.report_s, row.printed_lines, row.message, row.absent),
    ]

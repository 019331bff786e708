"""The table as a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.render.charts.parts.chart import spec_of
from fairlap.render.charts.parts.libraries import altair, drawn
from fairlap.render.charts.parts.look import Look
from fairlap.render.document import Document, Picture, Records, Section, Table
from fairlap.request.names import with_version
from fairlap.stability.table import Repeated, StabilityRow, StabilityTable

_WIDTH, _HEIGHT = 640, 320


def chart_of(result: StabilityTable, look: Look) -> str:
    alt = altair()
    points = [
        {
            **{"contestant": row.contestant, "work": row.model, "precision": row.precision},
            **{"digits": row.digits_kept, "us": row.time_ns / 1e3},
        }
        for row in result.rows
        if row.time_ns is not None and row.digits_kept is not None
    ]
    if not points:
        raise InvalidRequest("there is nothing to draw: no contestant has an answer", code="E_OUTPUT")
    names = list(dict.fromkeys(str(point["contestant"]) for point in points))
    colour = alt.Color("contestant:N", scale=alt.Scale(domain=names, range=look.colours(len(names))), title=None)
    precisions = list(dict.fromkeys(str(point["precision"]) for point in points))
    shape = alt.Shape("precision:N", scale=alt.Scale(domain=precisions), title=None)
    chart = (
        alt.Chart(alt.Data(values=points))
        .mark_point(filled=True, size=60, opacity=1)
        .encode(
            x=alt.X("digits:Q", title="digits kept"),
            y=alt.Y("us:Q", scale=alt.Scale(type="log"), title="time of a call in µs"),
            color=colour,
            tooltip=["contestant:N", "work:N", "precision:N", "digits:Q", "us:Q"],
            **({"shape": shape} if len(precisions) > 1 else {}),
        )
        .properties(width=_WIDTH, height=_HEIGHT, title="Time against digits kept")
    )
    return drawn(spec_of(chart), look)


_HEADS = (
    "work",
    "contestant",
    "digits kept",
    "possible",
    "time",
    "again",
    "another process",
    "threads",
    "alone in batch",
)
_MOST_LISTED = 6
_CHECKS = ("again", "process", "threads", "batched")
_ABOUT = (
    "Digits kept are those of the answer against the reference, possible ones those that rounding the inputs leaves to "
    "any algorithm.",
    "A time is the median call of one process on {device}, which decides nothing; 'fairlap compare' races.",
    "The last four columns say whether the bits of the answer are the same: again in the same process, in another "
    "process, with {threads} instead of one, and for the first item alone instead of in its batch.",
)


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


def document_of(result: StabilityTable) -> Document:
    return Document(
        title="Numerical stability",
        facts=tuple(
            each.format(threads=_threads(result.threads), device="the CPU" if result.device == "cpu" else result.device)
            for each in _ABOUT
        ),
        sections=[
            Section("Digits, time and repeated answers", [Table("Stability", _HEADS, list(map(_cells, result.rows)))]),
            _chart(result),
            Section("Notes", notes=_notes(result.rows)),
        ],
        data=result,
        records=_records(result),
        draw=partial(chart_of, result),
    )


def _cells(row: StabilityRow) -> list[str]:
    work = f"{row.model} {row.precision}" + f" batch {row.batch}" * (row.batch > 1)
    names = [work, with_version(row.contestant, row.version)]
    if row.absent:
        return [*names, row.code, *[""] * (len(_HEADS) - 3)]
    return [
        *names,
        "" if row.digits_kept is None else f"{row.digits_kept:.1f}",
        "" if row.digits_possible is None else f"{row.digits_possible:.1f}",
        "" if row.time_ns is None else quantity_text.duration(row.time_ns),
        *map(_text, row.checks),
    ]


def _text(found: Repeated) -> str:
    """Write a dash where nothing was compared; the notes say why."""
    if found.equal is None:
        return "-"
    if found.equal:
        return "equal"
    by = "" if found.relative is None else f" by {quantity_text.relative_error(found.relative)}"
    return f"{quantity_text.share(found.differing / found.elements)} differ{by}"


def _notes(rows: Sequence[StabilityRow]) -> list[str]:
    """Why something is absent, each reason once."""
    lacking: dict[str, list[StabilityRow]] = {}
    not_compared: dict[str, list[StabilityRow]] = {}
    for row in rows:
        if row.absent:
            lacking.setdefault(row.absent, []).append(row)
            continue
        for head, found in zip(_HEADS[-len(_CHECKS) :], row.checks, strict=True):
            if found.why:
                not_compared.setdefault(f"{head}: {found.why}", []).append(row)
    return [
        *(
            f"{_listed(each.contestant for each in of)}, {_listed(each.model for each in of)}: {why}"
            for why, of in lacking.items()
        ),
        *(f"{why} ({_listed(each.model for each in of)})" for why, of in not_compared.items()),
    ]


def _listed(names: Iterable[str]) -> str:
    each = tuple(dict.fromkeys(names))
    more = len(each) - _MOST_LISTED
    return " and ".join((*each[:_MOST_LISTED], f"{more} more")) if more > 1 else " and ".join(each)


def _chart(result: StabilityTable) -> Section:
    there = any(row.time_ns is not None and row.digits_kept is not None for row in result.rows)
    picture = Picture("Time of a call against digits kept", partial(chart_of, result)) if there else None
    return Section("Time against digits", picture=picture)


def _records(result: StabilityTable) -> Records:
    names = (
        *("contestant", "version", "model", "precision", "batch", "relative_error", "digits_kept", "digits_possible"),
        *("time_ns", *(f"{check}_equal" for check in _CHECKS), *(f"{check}_relative" for check in _CHECKS), "absent"),
    )
    rows = [
        [
            *(row.contestant, row.version, row.model, row.precision, row.batch, row.relative_error, row.digits_kept),
            *(row.digits_possible, row.time_ns, *(found.equal for found in row.checks)),
            *(found.relative for found in row.checks),
            row.absent,
        ]
        for row in result.rows
    ]
    return Records(names, rows)

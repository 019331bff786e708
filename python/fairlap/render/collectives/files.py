"""Collective operations as JSON, CSV, Markdown, a page or a picture; the suffix of the file decides."""

from __future__ import annotations

import base64
import csv
import io

import msgspec

from fairlap.render.collectives.table import (
    FIT_HEADS,
    HEADS,
    NAMES,
    about,
    cells,
    exchanges,
    fit_cells,
    operations_of,
    reasons,
)
from fairlap.render.csv_file import guarded
from fairlap.render.markdown_table import as_code, table_line
from fairlap.render.report.markup import Markup, table, tag
from fairlap.render.report.still_page import still_page
from fairlap.results.collectives import CollectiveFit, CollectiveRow, CollectivesResult
from fairlap.results.row import Estimate

SUFFIXES = (".json", ".csv", ".md", ".markdown", ".html", ".svg", ".png")
_COLUMNS = (
    "contestant", "version", "operation", "ranks", "threads", "bytes", "time_ns", "time_ns_low", "time_ns_high",
    "bytes_per_s", "bytes_per_s_low", "bytes_per_s_high", "times_mpi", "times_mpi_low", "times_mpi_high", "absent",
)  # fmt: skip


def encoded(result: CollectivesResult, format_name: str) -> bytes:
    if format_name in ("svg", "png"):
        from fairlap.render.collectives.chart import chart_of

        return chart_of(result, png=format_name == "png")
    return {"json": _json, "csv": _csv, "md": _markdown, "html": _page}[format_name](result)


def _json(result: CollectivesResult) -> bytes:
    return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"


def _csv(result: CollectivesResult) -> bytes:
    """The lines of the table; JSON has the fitted latencies and bandwidths too."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in result.rows:
        figures = [*_three(row.time_ns), *_three(row.bytes_per_s), *_three(row.times_mpi)]
        about_it = [guarded(row.contestant), guarded(row.version), row.operation, result.ranks, result.threads]
        writer.writerow([*about_it, row.bytes, *figures, guarded(row.absent)])
    return text.getvalue().encode()


def _three(found: Estimate | None) -> list[float | None]:
    return [None, None, None] if found is None else [found.value, found.low, found.high]


def _markdown(result: CollectivesResult) -> bytes:
    parts = ["### fairlap: collective operations", "", about(result), ""]
    for operation in operations_of(result):
        rows = [table_line(_as_code(cells(row))) for row in _rows(result, operation)]
        parts += [f"#### {NAMES[operation]}", "", table_line(HEADS), table_line(["---"] * len(HEADS)), *rows, ""]
        fits = [table_line(_as_code(fit_cells(fit))) for fit in _fits(result, operation)]
        if fits:
            parts += [table_line(FIT_HEADS), table_line(["---"] * len(FIT_HEADS)), *fits, ""]
    parts += [f"- {as_code(note, 400)}" for note in (*exchanges(result), *reasons(result))]
    return ("\n".join(parts).rstrip() + "\n").encode()


def _as_code(shown: list[str]) -> list[str]:
    return [as_code(cell) for cell in shown]


def _rows(result: CollectivesResult, operation: str) -> list[CollectiveRow]:
    return [row for row in result.rows if row.operation == operation]


def _fits(result: CollectivesResult, operation: str) -> list[CollectiveFit]:
    return [fit for fit in result.fits if fit.operation == operation]


def _page(result: CollectivesResult) -> bytes:
    notes = tag("ul", (tag("li", note) for note in (*exchanges(result), *reasons(result))), class_="caption")
    about_it = tag("p", about(result), class_="note")
    return still_page("Collective operations", about_it, _chart(result), _sections(result), notes)


def _sections(result: CollectivesResult) -> list[Markup]:
    sections = []
    for operation in operations_of(result):
        rows = [dict(zip(HEADS, cells(row), strict=True)) for row in _rows(result, operation)]
        shown = [tag("div", table(NAMES[operation], list(HEADS), rows, "cards"), class_="scroll")]
        fits = [dict(zip(FIT_HEADS, fit_cells(fit), strict=True)) for fit in _fits(result, operation)]
        if fits:
            heading = "time = latency + bytes / bandwidth"
            shown.append(tag("p", heading, class_="caption"))
            shown.append(tag("div", table(heading, list(FIT_HEADS), fits, "cards"), class_="scroll"))
        sections.append(tag("section", tag("h2", NAMES[operation]), shown))
    return sections


def _chart(result: CollectivesResult) -> Markup | None:
    if all(row.time_ns is None for row in result.rows):
        return None
    from fairlap.render.collectives.chart import chart_of

    source = f"data:image/svg+xml;base64,{base64.b64encode(chart_of(result)).decode()}"
    picture = tag("img", src=source, alt="Time by size of each collective operation", style="max-width: 100%")
    return tag("section", tag("h2", "Time by size"), tag("figure", picture))

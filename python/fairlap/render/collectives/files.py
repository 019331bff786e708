"""Collective operations as JSON, CSV, Markdown, a page or a picture; the suffix of the file decides."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterator

import msgspec

from fairlap.render.collectives.table import (
    FIT,
    NAMES,
    Table,
    about,
    exchanges,
    fit_table,
    operations_of,
    reasons,
    table_of,
)
from fairlap.render.csv_file import guarded
from fairlap.render.markdown_table import as_code, table_line
from fairlap.render.report.markup import Markup, scrolling, table, tag
from fairlap.render.report.still_page import still_page
from fairlap.results.collectives import CollectivesResult
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
    """Write the lines of the table; JSON has the fitted latencies and bandwidths too."""
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
    tables = {NAMES[operation]: table_of(result, operation) for operation in operations_of(result)}
    for title, rows in (tables | {FIT: fit_table(result)}).items():
        if rows:
            parts += [f"#### {title}", "", *_markdown_table(rows), ""]
    parts += [f"- {as_code(note, 400)}" for note in (*exchanges(result), *reasons(result))]
    return ("\n".join(parts).rstrip() + "\n").encode()


def _markdown_table(rows: Table) -> Iterator[str]:
    """Names that a user wrote are code; the rest is ours."""
    heads, *lines = rows
    names = heads.index("contestant")
    yield from (table_line(heads), table_line(["---"] * len(heads)))
    for line in lines:
        yield table_line([as_code(cell) if place == names else cell for place, cell in enumerate(line)])


def _page(result: CollectivesResult) -> bytes:
    notes = tag("ul", (tag("li", note) for note in (*exchanges(result), *reasons(result))), class_="caption")
    about_it = tag("p", about(result), class_="note")
    tables = [
        _section(NAMES[each], f"Times of {NAMES[each]}", table_of(result, each)) for each in operations_of(result)
    ]
    fits = fit_table(result)
    if fits:
        tables.append(_section("Latency and bandwidth", FIT, fits))
    return still_page("Collective operations", about_it, _chart(result), tables, notes)


def _section(title: str, caption: str, rows: Table) -> Markup:
    heads, *lines = rows
    shown = [dict(zip(heads, line, strict=True)) for line in lines]
    return tag("section", tag("h2", title), scrolling(title, table(caption, heads, shown, "cards")))


def _chart(result: CollectivesResult) -> Markup | None:
    if all(row.time_ns is None for row in result.rows):
        return None
    from fairlap.render.collectives.chart import how_to_read, panels_of

    source = f"data:image/svg+xml;base64,{base64.b64encode(panels_of(result)).decode()}"
    picture = tag("img", src=source, alt="Time by size of each collective operation", style="max-width: 100%")
    caption = tag("p", how_to_read(result), class_="caption")
    return tag("section", tag("h2", "Time by size"), caption, tag("figure", picture))

"""Runs side by side as JSON, CSV, Markdown, a page or a picture; the suffix of the file decides."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from fairlap.history.across.decisions import decisions_of
from fairlap.history.across.differing import Differing, what_differs
from fairlap.history.across.frontier import with_domination
from fairlap.history.across.lines import FIGURES, Line, entries_of
from fairlap.render.across.table import NO_CLAIM, by_work, columns_of, reasons, title
from fairlap.render.across.text import across_text
from fairlap.render.csv_file import guarded
from fairlap.render.decision import decision_lines
from fairlap.render.markdown_table import as_code, table_line
from fairlap.render.report.markup import Markup, joined, scrolling, table, tag
from fairlap.render.report.still_page import still_page
from fairlap.results.decision.decision import Decision
from fairlap.results.decision.question import Question
from fairlap.results.prices import Price
from fairlap.store.stored_rows import RowsOfRun


@dataclass(frozen=True)
class Across:
    """All that the command found."""

    lines: Sequence[Line]
    differing: Sequence[Differing]
    decisions: Sequence[Decision] = ()  # one for each work, where a decision was asked for

    @property
    def document(self) -> dict[str, object]:
        found: dict[str, object] = {"note": NO_CLAIM, "lines": self.lines, "differences": self.differing}
        return found | ({"decisions": self.decisions} if self.decisions else {})

    @property
    def text(self) -> str:
        decided = ["\n".join(decision_lines(each)) for each in self.decisions]
        return "\n\n".join([across_text(self.lines, self.differing), *decided])


def across_of(
    found: Sequence[RowsOfRun],
    prices: Mapping[str, Price] | None = None,
    grams_per_joule: Mapping[str, float] | None = None,
    question: Question | None = None,
) -> Across:
    """Prices and the grid's carbon are by the name that the user gave a run."""
    entries = with_domination(entries_of(found, prices or {}, grams_per_joule or {}))
    decisions = decisions_of(entries, question) if question is not None else []
    return Across([each.line for each in entries], what_differs(found, entries), decisions)


SUFFIXES = (".json", ".csv", ".md", ".markdown", ".html", ".svg", ".png")


def encoded(found: Across, format_name: str) -> bytes:
    if format_name in ("svg", "png"):
        from fairlap.render.across.chart import pareto_chart

        return pareto_chart(found.lines, png=format_name == "png")
    return {"json": _json, "csv": _csv, "md": _markdown, "html": _page}[format_name](found)


def _json(found: Across) -> bytes:
    return msgspec.json.format(msgspec.json.encode(found.document), indent=2) + b"\n"


def _csv(found: Across) -> bytes:
    """Write a CSV file; an estimate has three columns, and ``absent`` and ``dominated_by`` are JSON."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(
        column
        for name in Line.__struct_fields__
        for column in ((name, f"{name}_low", f"{name}_high") if name in FIGURES else (name,))
    )
    for line in found.lines:
        writer.writerow(cell for name in Line.__struct_fields__ for cell in _cells(line, name))
    return text.getvalue().encode()


def _cells(line: Line, name: str) -> list[object]:
    value = getattr(line, name)
    if name in FIGURES:
        return [None, None, None] if value is None else [value.value, value.low, value.high]
    if isinstance(value, dict | list):
        return [msgspec.json.encode(value).decode()]
    return [guarded(value) if isinstance(value, str) else value]


def _markdown(found: Across) -> bytes:
    parts = []
    for work, lines in by_work(found.lines).items():
        columns = columns_of(lines)
        heads = ["contestant", "run", "machine", *(column.head for column in columns)]
        rows = [
            [as_code(title(line)), as_code(line.run), as_code(line.machine), *(c.cell(line) or "-" for c in columns)]
            for line in lines
        ]
        parts += [f"### {as_code(work)}", "", table_line(heads), table_line(["---"] * len(heads))]
        parts += [*map(table_line, rows), "", *(f"- {as_code(reason, 400)}" for reason in reasons(lines)), ""]
    parts += [NO_CLAIM, ""]
    if found.differing:
        parts += [table_line(["about", "what", "run", "value"]), table_line(["---"] * 4)]
        parts += [
            table_line([each.about, as_code(each.what), as_code(run), as_code(value)])
            for each in found.differing
            for run, value in each.values.items()
        ]
    parts += ["", *(f"- {as_code(line, 600)}" for each in found.decisions for line in decision_lines(each))]
    return ("\n".join(parts).rstrip() + "\n").encode()


def _page(found: Across) -> bytes:
    claim = tag("p", NO_CLAIM, class_="note")
    return still_page("Runs side by side", claim, _tables(found), _chart(found), _decided(found), _differing(found))


def _tables(found: Across) -> list[Markup]:
    sections = []
    for work, lines in by_work(found.lines).items():
        columns = columns_of(lines)
        heads = ["contestant", "run", "machine", *(column.head for column in columns)]
        rows = [
            {"contestant": title(line), "run": line.run, "machine": line.machine}
            | {column.head: column.cell(line) or "–" for column in columns}
            for line in lines
        ]
        notes = tag("ul", (tag("li", reason) for reason in reasons(lines)), class_="caption")
        shown = scrolling(work, table("Contestants of all runs", heads, rows, "cards"))
        sections.append(tag("section", tag("h2", work), shown, notes))
    return sections


def _chart(found: Across) -> Markup | None:
    if not any(line.judged_cost is not None for line in found.lines):
        return None
    from fairlap.render.across.chart import pareto_chart

    source = f"data:image/svg+xml;base64,{base64.b64encode(pareto_chart(found.lines)).decode()}"
    picture = tag("img", src=source, alt="Time of a call against the cost of 1,000 items", style="max-width: 100%")
    return tag("section", tag("h2", "Latency against cost"), tag("figure", picture))


def _decided(found: Across) -> Markup | None:
    lines = [line for each in found.decisions for line in decision_lines(each)]
    return tag("section", tag("h2", "Decision"), (tag("p", line) for line in lines)) if lines else None


def _differing(found: Across) -> Markup:
    rows = [{"about": each.about, "what": each.what, "values": joined(*_values(each))} for each in found.differing]
    shown = table("What differs", ["about", "what", "values"], rows, "cards")
    return tag("section", tag("h2", "What differs"), scrolling("What differs", shown))


def _values(each: Differing) -> list[Markup]:
    return [tag("div", f"{run}: {value}") for run, value in each.values.items()]

"""Every format that a history can be written in. The suffix of a file's name decides which."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec

from fairlap.history.history_text import (
    cause_text,
    day,
    figure_text,
    no_change_text,
    ratio_head,
    ratio_text,
    subject_text,
    trend_title,
)
from fairlap.history.model_history import ModelHistory
from fairlap.render.csv_file import guarded
from fairlap.render.markdown_table import as_code, table_line
from fairlap.render.outputs import FORMATS

HISTORY_FORMATS = {suffix: FORMATS[suffix] for suffix in (".json", ".csv", ".md", ".html", ".svg", ".png")}


def encoded(history: ModelHistory, format_name: str) -> bytes:
    """Encode the whole file; text is UTF-8."""
    match format_name:
        case "json":
            return msgspec.json.format(msgspec.json.encode(document(history)), indent=2) + b"\n"
        case "csv":
            return _csv(history)
        case "md":
            return _markdown(history)
        case "html":
            from fairlap.render.trends.page import page_of

            return page_of(history).encode()
    from fairlap.render.trends.chart import picture

    return picture(history, png=format_name == "png")


def document(history: ModelHistory) -> dict[str, Any]:
    """Of every trend all series, also of contestants that only served for comparison, and the changes."""
    return {
        "model": history.model,
        "on": history.on,
        "since": history.since,
        "margin": float(history.margin),
        "trends": [
            {
                **msgspec.to_builtins(each.trend),
                "changes": msgspec.to_builtins(each.changes),
                "smallest_steps": msgspec.to_builtins(each.smallest_steps),
            }
            for each in history.trends
        ],
    }


_COLUMNS = (
    "work", "conditions", "threads", "device", "machine", "quantity", "contestant", "version", "run", "began_at",
    "value_ns", "low_ns", "high_ns", "change", "ratio", "ratio_low", "ratio_high",
)  # fmt: skip


def _csv(history: ModelHistory) -> bytes:
    """One line for each contestant and run; ``change`` is the cause of a change that begins there."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for each in history.trends:
        trend = each.trend
        changes = {(name, change.run): change for change in each.changes for name in change.contestants}
        same = (trend.work, trend.conditions, trend.threads, trend.device, trend.machine, trend.quantity)
        for series in trend.series:
            for point in series.points:
                change = changes.get((series.contestant, point.run))
                found = (
                    ("", None, None, None) if change is None else (change.cause, change.ratio, change.low, change.high)
                )
                cells = (*same, series.contestant, point.version, point.run, point.began_at)
                figures = (point.value_ns, point.low_ns, point.high_ns, *found)
                writer.writerow([guarded(cell) if isinstance(cell, str) else cell for cell in (*cells, *figures)])
    return text.getvalue().encode()


def _markdown(history: ModelHistory) -> bytes:
    parts = [f"### fairlap: history of {as_code(history.model)}"]
    for each in history.trends:
        series = each.trend.asked(history.on)
        parts.append(f"**{as_code(trend_title(each.trend), most=300)}**")
        heads = ("contestant", "version", "first", "last", "runs")
        lines = [table_line(heads), table_line(["---"] * len(heads))]
        for own in series:
            first, last = own.points[0], own.points[-1]
            figures = [figure_text(each.trend, point.value_ns) for point in (first, last)]
            lines.append(table_line([as_code(own.contestant), as_code(last.version), *figures, str(len(own.points))]))
        parts.append("\n".join(lines))
        heads = ("date", "what changed", ratio_head(each.trend), "evidence", "run")
        lines = [table_line(heads), table_line(["---"] * len(heads))]
        for change in each.changes:
            size = ratio_text(each.trend, change)
            cells = [day(change.began_at), as_code(subject_text(change)), size, as_code(cause_text(change), most=200)]
            lines.append(table_line([*cells, change.run]))
        parts.append("\n".join(lines) if each.changes else as_code(no_change_text(each, history), most=300))
    return ("\n\n".join(parts) + "\n").encode()

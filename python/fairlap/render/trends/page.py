"""The history of a model as one HTML file without scripts, in the colours of the reader's theme."""

from __future__ import annotations

import base64
from importlib.resources import files

from fairlap import __version__, quantity_text
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
from fairlap.history.model_history import ModelHistory, TrendHistory
from fairlap.render.charts.libraries import svg_of
from fairlap.render.charts.look import DARK, LIGHT, Look
from fairlap.render.report.markup import Markup, breaking, scrolling, table, tag, trusted
from fairlap.render.trends.chart import chart_of, config

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_NOTE = (
    "One mark for each run, with its 95 % interval where it has one; lines are the medians between changes. "
    "Contestants of one run took turns, so a change of all of them is a change of the machine."
)


def page_of(history: ModelHistory) -> str:
    """Every text of the store is escaped; nothing is loaded and nothing runs."""
    title = f"History of {history.model}" + (f" on {history.on}" if history.on else "")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} – fairlap"),
        tag("style", trusted(files("fairlap.render.report").joinpath("page.css").read_text("utf-8"))),
    )
    since = f"since {day(history.since)}" if history.since else "all runs of the store"
    about = f"{since} · changes of {quantity_text.share(history.margin)} or more"
    body = tag(
        "body",
        tag(
            "header",
            tag("div", tag("span", "fairlap", class_="mark"), tag("h1", title), class_="name"),
            tag("p", about, class_="about"),
        ),
        tag("main", (_section(each, history) for each in history.trends), tag("p", _NOTE, class_="caption")),
        tag("footer", f"Made by fairlap {__version__}. This page works offline and sends no data."),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _section(found: TrendHistory, history: ModelHistory) -> Markup:
    on = history.on
    return tag(
        "section",
        tag("h2", trend_title(found.trend)),
        tag("figure", _picture(found, on)) if _has_course(found, on) else tag("p", "A chart takes two runs."),
        scrolling("Changes", _changes(found))
        if found.changes
        else tag("p", no_change_text(found, history), class_="caption"),
        scrolling("Contestants", _series(found, on)),
    )


def _has_course(found: TrendHistory, on: str) -> bool:
    return any(len(series.points) > 1 for series in found.trend.asked(on))


def _picture(found: TrendHistory, on: str) -> Markup:
    described = f"{found.trend.quantity} of {', '.join(each.contestant for each in found.trend.asked(on))} by date"
    return tag(
        "picture",
        tag("source", srcset=_data(found, on, DARK), media="(prefers-color-scheme: dark)"),
        tag("img", src=_data(found, on, LIGHT), alt=described, style="max-width: 100%; height: auto"),
    )


def _data(found: TrendHistory, on: str, look: Look) -> str:
    svg = svg_of({**chart_of(found, on, look, title=False), "config": config(look), "padding": 8})
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _changes(found: TrendHistory) -> Markup:
    size = ratio_head(found.trend)
    heads = ["date", "what changed", size, "evidence", "differs between the runs", "first run"]
    rows: list[dict[str, Markup | str]] = [
        {
            "date": day(change.began_at),
            "what changed": breaking(subject_text(change)),
            size: ratio_text(found.trend, change),
            "evidence": cause_text(change),
            "differs between the runs": "; ".join(change.facts),
            "first run": change.run,
        }
        for change in found.changes
    ]
    return table("Changes", heads, rows)


def _series(found: TrendHistory, on: str) -> Markup:
    heads = ["contestant", "version", "runs", "first", "last"]
    rows: list[dict[str, Markup | str]] = []
    for series in found.trend.asked(on):
        first, last = series.points[0], series.points[-1]
        rows.append(
            {
                "contestant": breaking(series.contestant),
                "version": last.version,
                "runs": str(len(series.points)),
                "first": f"{figure_text(found.trend, first.value_ns)}, {day(first.began_at)}",
                "last": f"{figure_text(found.trend, last.value_ns)}, {day(last.began_at)}",
            }
        )
    return table("Contestants", heads, rows)

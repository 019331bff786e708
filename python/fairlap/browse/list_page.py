"""The list of stored runs as an HTML page without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from fairlap.render.report.markup import Markup, joined, scrolling, table, tag
from fairlap.render.report.still_page import still_page
from fairlap.store.runs.listed_works import listed_works
from fairlap.store.search import RunSummary, State, Wanted
from fairlap.version import __version__

_STYLE = """
form { margin-top: 1.5rem; } fieldset { align-items: end; gap: .6rem 1rem; margin-bottom: 1rem; }
label { color: var(--muted); font-size: .88rem; display: grid; gap: .2rem; }
input { background: var(--raised); border: 1px solid var(--line); border-radius: .5rem; padding: .3rem .6rem; }
.finished, .running { white-space: nowrap; }
.finished { color: var(--good); } .killed { color: var(--trouble); } .running { color: var(--accent); }
td a { white-space: nowrap; } form p { margin-top: 1rem; } nav { display: flex; gap: 1.5rem; margin-top: 1.5rem; }
@media (min-width: 44.01rem) { .runs td:nth-child(3), .runs td:nth-child(5) { white-space: nowrap; } }
@media (max-width: 44rem) {
  .runs td:nth-child(2) { grid-column: 2 / 4; } .runs td:nth-child(6) { grid-column: 1 / 4; }
}
"""
_SIGNS: Mapping[State, str] = {"running": "…", "finished": "✓", "interrupted": "‖", "killed": "✗"}
_FILES = {"rows.csv": "CSV", "rows.json": "JSON", "run.json": "run file"}


@dataclass(frozen=True)
class RunList:
    """A page of runs, the newest first."""

    wanted: Wanted
    runs: Sequence[RunSummary]
    older: str = ""  # the id before which the next page begins; empty on the last page
    limit: str = ""  # runs on a page, where it was given
    note: str = ""  # why there is none
    models: Sequence[str] = ()  # of all runs, to choose from


def page_of(found: RunList) -> bytes:
    """Every text of the store is escaped."""
    footer = f"fairlap {__version__}. This page only reads the store."
    parts = (_filters(found), _runs(found), _pages(found))
    return still_page("Stored runs", *parts, style=_STYLE, form_action="'self'", footer=footer)


def _filters(found: RunList) -> Markup:
    labels = {"model": "Model", "on": "Contestant or framework", "since": "Since"}
    lists = {"model": "models"}
    fields = (
        tag("label", label, tag("input", name=name, value=getattr(found.wanted, name), list=lists.get(name)))
        for name, label in labels.items()
    )
    models = tag("datalist", (tag("option", value=each) for each in found.models), id=lists["model"])
    buttons = joined(
        tag("button", "Filter", type="submit"),
        tag("button", "History of the model", type="submit", formaction="/history"),
    )
    return tag("form", tag("fieldset", fields, models, buttons), action="/", method="get")


def _runs(found: RunList) -> Markup:
    if not found.runs:
        return tag("p", found.note or "There is no such run.", class_="note")
    heads = ["choose", "run", "began (UTC)", "state", "processes", "contestants by place", "files"]
    works = listed_works(found.runs)
    rows = [dict(zip(heads, _cells(run, works[run.run]), strict=True)) for run in found.runs]
    return tag(
        "form",
        scrolling("Runs", table("Runs, the newest first", heads, rows, "cards runs")),
        tag("p", tag("button", "Show chosen runs side by side", type="submit")),
        action="/across",
        method="get",
    )


def _cells(run: RunSummary, works: Sequence[str]) -> list[Markup | str]:
    path = f"/runs/{quote(run.run, safe='', errors='replace')}"
    ended_early = f": {run.ended_early}" if run.ended_early else ""
    return [
        tag("input", type="checkbox", name="run", value=run.run, aria_label=f"Choose {run.run}"),
        tag("a", run.run, href=path),
        run.began_at[:16].replace("T", " ") or "unknown time",
        tag("span", f"{_SIGNS[run.state]} {run.state}{ended_early}", class_=f"state {run.state}"),
        run.processes_text,
        joined(tag("div", line) for line in works),
        joined(*((tag("a", text, href=f"{path}/{name}"), " ") for name, text in _FILES.items())),
    ]


def _pages(found: RunList) -> Markup:
    wanted = found.wanted
    given = {"model": wanted.model, "on": wanted.on, "since": wanted.since, "limit": found.limit}
    kept = {name: value for name, value in given.items() if value}
    newest = tag("a", "Newest", href=_link(kept)) if wanted.before else None
    older = tag("a", "Older", href=_link({**kept, "before": found.older}), rel="next") if found.older else None
    return tag("nav", newest, older)


def _link(parameters: dict[str, str]) -> str:
    return f"/?{urlencode(parameters, errors='replace')}" if parameters else "/"

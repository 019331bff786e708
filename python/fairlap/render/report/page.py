"""A run as one HTML file that needs nothing else: no network, no server."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files

from fairlap import quantity_text
from fairlap.race.run import Run
from fairlap.race.stopping import DECIDED
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts import look
from fairlap.render.charts.parts.chart import Chart
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.charts.parts.labels import chart_text, chart_texts
from fairlap.render.charts.parts.libraries import vega_script
from fairlap.render.document import Section
from fairlap.render.items_by_batch import noted_least_times
from fairlap.render.report import circumstances
from fairlap.render.report.answer import answer, headline, headline_of_one, times_per_item
from fairlap.render.report.circumstances import feeding
from fairlap.render.report.compilation_table import compilation_table
from fairlap.render.report.decision import decided
from fairlap.render.report.markup import Child, Markup, joined, json_island, scrolling, table, tag, trusted
from fairlap.render.report.operators import NOTE, operators
from fairlap.render.report.page_data import for_the_program
from fairlap.render.report.ranked_table import ranked_table
from fairlap.render.report.searches import batch_tries, settings_search
from fairlap.render.report.section_tables import section_tables
from fairlap.render.scenario_side import render_sides
from fairlap.render.text.corrupted_scores import NOTE as NOTE_ON_CORRUPTED
from fairlap.render.text.corrupted_scores import corrupted_sections
from fairlap.render.text.group_scores import NOTE as NOTE_ON_GROUPS
from fairlap.render.text.group_scores import group_sections
from fairlap.render.text.scaling import NOTE as NOTE_ON_SCALES
from fairlap.render.text.scaling import scaling_sections
from fairlap.request.work import Work
from fairlap.request.work_title import work_title
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult

_SECTIONS = {
    "speed": "Time of a call",
    "scaling": "Speed-up and efficiency",
    "cold": "Start-up",
    "resources": "Memory, energy, cost",
    "answers": "Numerical errors",
}


def page_of(shown: Results) -> str:
    """Render the whole page.

    Every text of the run is escaped; only scripts of this package may run in it.
    """
    tables = chart_tables(shown)
    charts = charts_of(shown, tables)
    scripts = _scripts()
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{_title(shown)} – fairlap"),
        tag("style", trusted(_own("page.css") + _colours(shown))),
    )
    body = tag(
        "body",
        tag("a", "Skip to the answer", href="#answer", class_="skip"),
        _header(shown),
        tag(
            "main",
            decided(shown),
            _answers(shown),
            _filters(shown),
            _tables(shown),
            _scaled(shown),
            _slices("Groups", group_sections(shown.rows), NOTE_ON_GROUPS, "groups"),
            _slices("Corrupted data", corrupted_sections(shown.rows), NOTE_ON_CORRUPTED, "corrupted"),
            _fed(shown),
            _batches(shown),
            _operators(shown),
            _searches(shown),
            _compiled(shown),
            _charts(charts),
            _behind(shown),
        ),
        tag("footer", f"Made by fairlap {shown.run.fairlap}. This page works offline and sends no data."),
        json_island("shown", chart_texts(for_the_program(shown, charts, tables))),
        (tag("script", script) for script in scripts),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def policy() -> str:
    """Return the content security policy of every such page, for a server that sends one."""
    return _policy(_scripts())


def _scripts() -> list[Markup]:
    return [trusted(vega_script()), trusted(_own("page.js"))]


def _own(name: str) -> str:
    return files("fairlap.render.report").joinpath(name).read_text("utf-8")


def _policy(scripts: Sequence[Markup]) -> str:
    """Scripts are allowed by their hashes, so that no injected script can run."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    inline = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {hashes}; {inline}"


def _colours(shown: Results) -> str:
    """Define the colours of the contestants as CSS variables, for both themes."""

    def named(of: look.Look) -> str:
        colours = of.colours(len(shown.contestants))
        return "".join(f"--contestant-{place}:{colour};" for place, colour in enumerate(colours))

    light, dark = named(look.LIGHT), named(look.DARK)
    return (
        f":root{{{light}}}@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}@media print{{:root{{{light}}}}}"
    )


def _title(shown: Results) -> str:
    works = shown.works()
    if len(works) == 1:
        return shown.run.plan.title_of(works[0])
    return work_title(quantity_text.count(len(works), "work"), shown.run.plan.data)


def _header(shown: Results) -> Markup:
    plan = shown.run.plan
    parts = [shown.run.began_at.replace("T", " ").removesuffix("+00:00"), f"run {shown.run_id}", plan.device]
    return tag(
        "header",
        tag("div", tag("span", "fairlap", class_="mark"), tag("h1", _title(shown)), class_="name"),
        tag("p", " · ".join(part for part in parts if part), class_="about"),
        tag("button", "Dark", type="button", id="theme", aria_pressed="false", hidden=True),
    )


def _answers(shown: Results) -> Markup:
    works = shown.works()
    overview = None
    if len(works) > 1:
        items = times_per_item(shown)
        heads = ["work", "answer", *(["time per item"] if items else [])]
        rows = [_overview_row(shown, work) | items.get(work, {}) for work in works]
        overview = scrolling("All works", table("All works", heads, rows), "scroll overview")
    return tag(
        "section",
        tag("h2", "The answer"),
        _why_it_ended(shown.run),
        tag("p", sentence, class_="headline") if (sentence := headline_of_one(shown)) else None,
        overview,
        (tag("p", line, class_="caption") for line in noted_least_times(shown.rows)),
        _nothing(shown),
        (_of_work(work, answer(shown, shown.of_work(work)[0])) for work in works),
        id="answer",
    )


def _nothing(shown: Results) -> Markup | None:
    if shown.work_results:
        return None
    return tag(
        "div", tag("p", "Nothing was measured", class_="headline"), tag("p", "No process has ended."), class_="answer"
    )


def _overview_row(shown: Results, work: Work) -> dict[str, Markup | str]:
    link = tag("button", work.label, type="button", class_="link", data_choose=work.id)
    return {"work": link, "answer": headline(shown.of_work(work)[0])}


def _why_it_ended(run: Run) -> Markup | None:
    """Report why a race ended: one that decided everything ended as it should; one cut short gets a warning."""
    if not run.ended_early:
        return None
    if run.ended_early == DECIDED:
        return tag("p", f"Ended after {run.plan.counted(len(run.processes))}: {run.ended_early}.", class_="caption")
    return tag("p", f"The race ended after {run.plan.counted(len(run.processes))}: {run.ended_early}.", class_="note")


def _of_work(work: Work, *children: Markup | list[Markup] | None, conditions: str | None = None) -> Markup:
    """Shown while its work and conditions are selected; without JavaScript all are shown."""
    return tag("div", *children, data_work=work.id, data_conditions=conditions)


def _table_of(section: str, work_result: WorkResult, inside: Markup, *further: Markup | None) -> Markup:
    work, conditions = work_result.work, work_result.conditions
    whole = scrolling(f"{section}: {work.label}, {conditions}", inside)
    return _of_work(work, whole, *further, conditions=conditions)


def _filters(shown: Results) -> Markup:
    works, conditions = shown.works(), list(dict.fromkeys(work_result.conditions for work_result in shown.work_results))
    conditions.sort(key=lambda each: each != shown.run.plan.headline)
    chosen = tag("select", (tag("option", work.label, value=work.id) for work in works), id="work")
    kinds = tag("select", (tag("option", each, value=each) for each in conditions), id="conditions")
    boxes = (
        tag(
            "label",
            tag("input", type="checkbox", value=chart_text(name), checked=True, class_="contestant"),
            tag("span", class_="dot", style=f"--colour: var(--contestant-{place})"),
            tag("span", name),
            class_="chip",
        )
        for place, name in enumerate(shown.contestants)
    )
    return tag(
        "form",
        tag("label", "Work ", chosen, class_="pick", hidden=len(works) < 2),
        tag("label", "Conditions ", kinds, class_="pick", hidden=len(conditions) < 2),
        tag("fieldset", tag("legend", "Contestants"), boxes),
        id="filters",
        aria_label="Filters",
        hidden=True,
    )


def _work_results(shown: Results) -> list[WorkResult]:
    return [work_result for work in shown.works() for work_result in shown.of_work(work)]


def _section(title: str, parts: Child, note: str, key: str) -> Markup:
    return tag("section", tag("h2", title), parts, tag("p", note, class_="caption"), id=key)


def _tables_of(section: str, shown: Results, made: Callable[[WorkResult], Markup | None]) -> list[Markup]:
    """One of each work under each conditions, as far as there is something to show."""
    found = ((work_result, made(work_result)) for work_result in _work_results(shown))
    return [_table_of(section, work_result, inside) for work_result, inside in found if inside is not None]


def _tables(shown: Results) -> Markup:
    parts = (
        _table_of("Ranked", each, ranked_table(shown, each), circumstances.not_ranked(each))
        for each in _work_results(shown)
    )
    note = (
        "A place with = is a tie: the comparisons do not separate it from another contestant. "
        "Brackets are 95 % intervals."
    )
    return _section("Ranked", parts, note, "ranked")


def _scaled(shown: Results) -> Markup | None:
    if not shown.scaling:
        return None
    tables = section_tables(scaling_sections(shown), by_contestant=True)
    return _section("Scaling", tables, NOTE_ON_SCALES, "scales")


def _slices(title: str, sections: Sequence[Section], note: str, name: str) -> Markup | None:
    return _section(title, section_tables(sections), note, name) if sections else None


def _fed(shown: Results) -> Markup | None:
    if not shown.run.plan.data:
        return None
    note = "Every call takes a batch, works on it and returns it. Shares are of that whole time."
    return _section("Feeding", _tables_of("Fed", shown, partial(feeding, shown)), note, "feeding")


def _batches(shown: Results) -> Markup | None:
    if not shown.run.plan.max_batch:
        return None
    note = "Each line is a fresh process that answered once and was timed for three calls, after the race."
    return _section("Largest batch", _tables_of("Batches", shown, batch_tries), note, "largest-batch")


def _operators(shown: Results) -> Markup | None:
    if not shown.run.profiles:
        return None
    parts = (_of_work(work, operators(shown, work)) for work in shown.works())
    return _section("Operators", parts, NOTE, "operators")


def _searches(shown: Results) -> Markup | None:
    if not shown.run.searches:
        return None
    note = (
        "Before the race, on other data. Only ratios to the default in the same blocks count: other times are of other "
        "moments. Round 1 changes one setting, round 2 several, round 3 repeats the last candidates."
    )
    return _section("Best settings", map(settings_search, shown.run.searches), note, "best-settings")


def _compiled(shown: Results) -> Markup | None:
    if not shown.run.compilations:
        return None
    note = (
        "Seen in separate processes that are in no block. A stall is how much longer the first call on such inputs "
        "took than later ones. What operators and kernels are differs between frameworks."
    )
    parts = _tables_of("Compilation", shown, partial(compilation_table, shown))
    return _section("Compilation", parts, note, "compilation")


def _charts(charts: Sequence[Chart]) -> list[Markup]:
    of_scenarios = {key: title for side in render_sides() for key, title in side.sections.items()}
    return [
        tag("section", tag("h2", title), (_figure(chart) for chart in charts if chart.section == key), id=key)
        for key, title in (of_scenarios | _SECTIONS).items()
        if any(chart.section == key for chart in charts)
    ]


def _figure(chart: Chart) -> Markup:
    if chart.absent:
        return tag("div", tag("h3", chart.title), tag("p", chart.absent, class_="caption"), class_="left-out")
    return tag(
        "figure",
        tag("figcaption", tag("h3", chart.title), tag("p", chart.note, class_="caption")),
        tag("ul", class_="key", hidden=True) if chart.keyed else None,
        tag("div", class_="chart", data_chart=chart.key),
    )


def _behind(shown: Results) -> Markup:
    every = tag("details", tag("summary", "All columns of all rows"), tag("div", id="every"), id="every-figure")

    def parts_of(made: Callable[[WorkResult], Markup]) -> list[Markup]:
        return [_of_work(each.work, made(each), conditions=each.conditions) for each in _work_results(shown)]

    return joined(
        tag("section", tag("h2", "All values"), every, id="figures"),
        tag(
            "section",
            tag("h2", "Blocks and warnings"),
            parts_of(circumstances.blocks),
            _tables_of("Warnings", shown, circumstances.warnings),
            id="blocks",
        ),
        tag(
            "section",
            tag("h2", "Machine and settings"),
            circumstances.machine(shown),
            parts_of(circumstances.settings),
            id="machine",
        ),
        circumstances.repeating(shown),
    )

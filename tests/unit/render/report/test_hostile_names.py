"""Whatever a contestant is called, its charts are drawn, on the page and as pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from fairlap.race.run import Run
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.charts.parts.labels import chart_text
from fairlap.render.charts.parts.libraries import png_of, svg_of
from fairlap.render.charts.parts.static import static_spec
from fairlap.render.report.page import page_of
from fairlap.results.results import Results, results_of
from machine_marks import needs
from measured_runs import a_measured_run

needs("altair", reason="charts need it")

NAMES = [
    "datum['x']",
    'datum["contestant"] || \'',
    'it\'s "quoted" and [bracketed] and long.with.dots',
    "back\\slash\\",
    "<b>bold</b> & <script>alert(1)</script></script>",
    "two\r\nlines",
    "esc \x1b]0;owned\x07 and a name that is long",
    "u+2028 \u2028 separates",
    "\u202edesrever",
    "constructor",
    "__proto__",
    "toString",
    "fairlap: contestants",
    "${name} {{name}}",
]

CONTESTANTS = ["torch", "jax:fast", "jax:a", "jax:b", "jax:c", "jax:d", "jax:e"]


def _named(*given: str) -> Results:
    """Make a run whose contestants have these names, with its raw samples."""
    names = dict(zip(CONTESTANTS, given, strict=False))

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: each if key == "framework" else renamed(each) for key, each in value.items()}
        if isinstance(value, list):
            return [renamed(each) for each in value]
        return names.get(value, value)

    run, samples = a_measured_run(8, ",".join(names))
    own = {(block, renamed(contestant)): ns for (block, contestant), ns in samples.items()}
    decoded = msgspec.json.decode(json.dumps(renamed(json.loads(msgspec.json.encode(run)))), type=Run)
    return replace(results_of(decoded, "r"), samples=lambda block, contestant: own[block, contestant])


def _marks(shown: Results) -> dict[str, int]:
    """How many shapes each picture has."""
    tables = chart_tables(shown)
    specs = {chart.key: static_spec(chart, shown, shown.work_results[0], tables) for chart in charts_of(shown, tables)}
    return {key: svg_of(spec).count("<path") for key, spec in specs.items() if spec is not None}


@cache
def _plain_marks() -> dict[str, int]:
    return _marks(_named(*CONTESTANTS))


@pytest.mark.slow_but("names1")
@pytest.mark.parametrize("names", [NAMES[::2], NAMES[1::2]])
def test_a_picture_has_all_its_shapes(names: list[str]) -> None:
    assert len(_plain_marks()) >= 6
    assert all(_plain_marks().values())
    assert _marks(_named(*names)) == _plain_marks()


class _Forms(HTMLParser):
    """What a browser's forms hold, with line breaks as browsers read them, and the data of the page's program."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.contestants: list[str] = []
        self.works: list[str] = []
        self.rows: set[str] = set()
        self.island = ""
        self._in_island = False
        self._select = ""
        self.feed(page.replace("\r\n", "\n").replace("\r", "\n"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        if tag == "input" and found.get("class") == "contestant":
            self.contestants.append(found["value"])
        if tag == "select":
            self._select = found["id"]
        if tag == "option" and self._select == "work":
            self.works.append(found["value"])
        if "data-contestant" in found:
            self.rows.add(found["data-contestant"])
        self._in_island = tag == "script" and found.get("id") == "shown"

    def handle_data(self, data: str) -> None:
        if self._in_island:
            self.island += data

    def handle_endtag(self, tag: str) -> None:
        self._in_island = False


@pytest.mark.slow_but(first=5)
@pytest.mark.parametrize("name", NAMES)
def test_the_program_of_a_page_finds_every_name_of_its_data_in_its_forms(name: str) -> None:
    found = _Forms(page_of(_named(name, "jax:fast")))
    data = json.loads(found.island)
    chosen = set(found.contestants)
    assert chosen == {chart_text(name), "jax:fast"} == set(data["contestants"]) == found.rows
    assert len(data["charts"]) == len(_plain_marks())
    for table in ("processes", "figures", "samples"):
        columns = data["tables"][table]["columns"]
        assert set(columns["contestant"]["of"]) == chosen
        assert set(columns["work_id"]["of"]) <= set(found.works)
    assert [set(names) for names in data["order"].values()] == [chosen]
    assert all(set(look["colours"]) == chosen for look in data["looks"].values())


def test_a_control_character_in_a_picture_does_not_end_the_process() -> None:
    spec = {"mark": "text", "data": {"values": [{"a": "\x1b\x00"}]}, "encoding": {"text": {"field": "a"}}}
    assert png_of(svg_of(spec)).startswith(b"\x89PNG")

"""The page in a real browser: it is drawn, it can be used, it fits, and it complains of nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from chromium import PROGRAM, Page, chromium
from fairlap.meters.energy import EnergyOfBlock, EnergyRead
from fairlap.render.report.page import page_of
from fairlap.results.prices import price_given
from fairlap.results.results import results_of
from runs_at_scales import a_run as a_run_at
from runs_at_scales import ranks
from runs_to_show import HOSTILE, SCRIPT, fed, run_of, samples

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium here; Debian has it in the package chromium"),
    pytest.mark.sanitized,
]

CHARTS = 15
_BARS = "[...document.querySelectorAll('[data-chart=intervals] .mark-symbol path')].length"

# A word on two lines has two rectangles.
_BROKEN_WORDS = """selector => [...document.querySelectorAll(selector)].flatMap(cell => {
  const found = [], texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/[^\\s-]+/g)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      if (range.getClientRects().length > 1) found.push(word[0]);
    }
  }
  return found;
})"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "race.html"
    path.write_text(
        page_of(results_of(run_of(HOSTILE, conditions="both"), "r", samples=samples, price=price_given("1/h")))
    )
    return path


@pytest.fixture(scope="module")
def fed_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fed") / "race.html"
    run = fed(("torch", "onnxruntime", "openvino:latency"))
    for process in run.processes:
        assert process.feeding is not None
        process.feeding = msgspec.structs.replace(process.feeding, items=30_069)
        process.in_force["feed"] = "fairlap"
        process.energy = EnergyOfBlock(2.0, 100, [EnergyRead("board", 300.0, 270.0, 360.0)])
    run.plan = msgspec.structs.replace(run.plan, data="/data/of/somebody/samples_of_the_whole_last_year.npy")
    path.write_text(page_of(results_of(run, "r", samples=samples, price=price_given("1/h"))))
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [380, 1200])
def test_it_is_drawn_without_a_complaint_and_fits(page: Page, report: Path, width: int, dark: bool) -> None:
    page.requests.clear()
    page.open(report, width=width, dark=dark)
    assert page.complaints == []
    assert page.run("document.querySelectorAll('[data-chart] svg.marks').length") == CHARTS
    assert page.run("document.documentElement.scrollWidth") == width
    paper = page.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)")
    assert {url for url in page.requests if not url.startswith(("about:", "data:"))} == {report.as_uri()}


@pytest.mark.parametrize("width", [360, 500, 900, 1200])
def test_no_figure_and_no_name_in_a_table_is_broken_in_two(page: Page, fed_report: Path, width: int) -> None:
    page.open(fed_report, width=width)
    assert page.run(f"({_BROKEN_WORDS})('#ranked td, #feeding td, #blocks td')") == []


@pytest.mark.parametrize("width", [360, 500])
def test_on_a_narrow_screen_the_tables_of_a_race_are_cards_that_fit(page: Page, fed_report: Path, width: int) -> None:
    page.open(fed_report, width=width)
    fit = "[...document.querySelectorAll('#ranked .scroll, #feeding .scroll, #blocks .scroll')]"
    assert page.run(f"{fit}.filter(e => e.checkVisibility()).length") == 3
    assert page.run(f"{fit}.every(e => e.scrollWidth <= e.clientWidth)")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_table_that_is_cut_off_has_a_shade_on_the_side_where_it_goes_on(
    page: Page, fed_report: Path, dark: bool
) -> None:
    page.open(fed_report, width=900, dark=dark)
    table = "document.querySelector('#ranked .scroll')"
    page.run(f"{table}.scrollIntoView()")
    assert page.run(f"{table}.scrollWidth > {table}.clientWidth")
    assert _edges(page, table) == {"left": False, "right": True}
    page.run(f"{table}.scrollLeft = 9999")
    assert _edges(page, table) == {"left": True, "right": False}


def _edges(page: Page, element: str) -> dict[str, bool]:
    """At which edge the element is not of the colour of the paper, a pixel inside of it."""
    place = page.run(f"(r => [r.left, r.right, r.bottom])({element}.getBoundingClientRect())")
    left, right, bottom = (round(each) for each in place)
    paper = _pixel(page, 2, bottom - 5)
    return {"left": _pixel(page, left, bottom - 5) != paper, "right": _pixel(page, right - 1, bottom - 5) != paper}


def _pixel(page: Page, x: int, y: int) -> str:
    clip = {"x": x + page.run("scrollX"), "y": y + page.run("scrollY"), "width": 1, "height": 1, "scale": 1}
    picture: str = page.send("Page.captureScreenshot", format="png", clip=clip)["data"]
    return picture


def test_every_chart_has_a_name_that_is_read_out(page: Page, report: Path) -> None:
    page.open(report)
    named = "(s.getAttribute('aria-label') || s.closest('[aria-label]')?.getAttribute('aria-label') || '').length > 40"
    assert page.run(f"[...document.querySelectorAll('[data-chart] svg.marks')].every(s => {named})")
    assert page.run("[...document.querySelectorAll('table')].every(t => t.caption && t.caption.textContent)")
    assert page.run("[...document.querySelectorAll('select, input')].every(i => i.labels.length === 1)")


def test_a_contestant_that_is_unchecked_leaves_the_charts_and_the_table(page: Page, report: Path) -> None:
    page.open(report)
    rows = f"[...document.querySelectorAll('tr[data-contestant={json.dumps(SCRIPT)}]')].some(r => r.checkVisibility())"
    before = page.run(_BARS)
    assert page.run(rows)
    page.run(f"document.querySelector('input[value={json.dumps(SCRIPT)}]').click()")
    page.wait_for("document.documentElement.dataset.drawn === 'all'")
    assert not page.run(rows)
    assert 0 < page.run(_BARS) < before


def test_work_and_conditions_choose_what_is_shown(page: Page, report: Path) -> None:
    page.open(report)
    visible = (
        "[...document.querySelectorAll('.ranked caption')].filter(c => c.checkVisibility()).map(c => c.textContent)"
    )
    assert page.run(visible) == ["mlp · infer · fp32 · batch 4, controlled"]
    page.run("document.querySelectorAll('button[data-choose]')[1].click()")
    page.run(
        "(() => { const c = document.getElementById('conditions'); c.value = 'as-found';"
        "c.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    page.wait_for("document.documentElement.dataset.drawn === 'all'")
    assert page.run(visible) == ["mlp · infer · fp32 · batch 8, as-found"]
    assert page.complaints == []


def test_the_button_turns_the_paper(page: Page, report: Path) -> None:
    page.open(report, dark=True)
    page.run("document.getElementById('theme').click()")
    page.wait_for("document.documentElement.dataset.drawn === 'all'")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_table_of_every_figure_fills_when_it_is_opened(page: Page, report: Path) -> None:
    page.open(report)
    page.run("document.querySelector('#every-figure summary').click()")
    page.wait_for("document.querySelector('#every table') !== null")
    text = page.run("document.querySelector('#every').textContent")
    assert "latency_p50_ns" in text
    assert "no source of power was read" in text
    assert SCRIPT in text


def test_a_script_that_is_smuggled_in_does_not_run(page: Page, report: Path) -> None:
    page.open(report)
    page.run(
        "(() => { const s = document.createElement('script'); s.text = 'window.ran = 1'; document.body.append(s) })()"
    )
    page.run("(() => { const d = document.createElement('div'); d.setAttribute('onclick', 'window.ran = 1');"
             "document.body.append(d); d.click() })()")  # fmt: skip
    assert page.run("window.ran === undefined")
    assert any("Content Security Policy" in complaint for complaint in page.complaints)
    page.complaints.clear()


def test_the_keyboard_reaches_the_answer_the_filters_and_the_theme(page: Page, report: Path) -> None:
    page.open(report)
    reached = set()
    for _ in range(14):
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.add(page.run("document.activeElement.className + ' ' + document.activeElement.id"))
    assert any("skip" in each for each in reached)
    assert any("theme" in each for each in reached)
    assert any("contestant" in each for each in reached)
    assert any("work" in each for each in reached)


def test_it_prints_with_all_its_charts(page: Page, report: Path) -> None:
    page.open(report, dark=True)
    pdf = page.send("Page.printToPDF", printBackground=False)["data"]
    assert len(pdf) > 50_000


@pytest.mark.parametrize("width", [380, 1200])
def test_charts_of_scales_are_drawn_for_every_work_and_their_table_fits(page: Page, tmp_path: Path, width: int) -> None:
    scales = ranks(1, 2, 4)
    path = tmp_path / "race.html"
    path.write_text(page_of(results_of(a_run_at(scales, dict.fromkeys(scales, 1.0), exchange_ns=20e6), "r")))
    page.open(path, width=width)
    assert page.complaints == []
    for place in range(len(scales)):
        page.run(f"(work.selectedIndex = {place}, work.dispatchEvent(new Event('change')))")
        for chart in ("speed_up", "efficiency", "exchange_share"):
            assert page.run(f"document.querySelectorAll('[data-chart={chart}] svg.marks path').length") > 0
    assert page.run("document.documentElement.scrollWidth") == width
    assert page.run("[...document.querySelectorAll('#scales tbody tr')].length") == 2 * len(scales)

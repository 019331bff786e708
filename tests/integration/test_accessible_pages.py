"""Every kind of page in a real browser: axe finds nothing serious, and nothing overlaps from 400 to 1,600 pixels."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from asgi_client import request
from chromium import PROGRAM, Page, chromium
from fairlap.render.report.page import page_of
from fairlap.results.results import results_of
from fairlap.store.store import open_store
from machine_marks import needs
from runs_at_scales import a_run as a_run_at
from runs_at_scales import ranks
from runs_in_store import a_run_with_everything, keep_whole
from runs_to_show import HOSTILE, fed, run_of, samples
from stored_histories import FIRST, daily_run, stored

needs("axe_core_python", reason="`make test` installs axe and runs this")
needs("fastapi", reason="needs the extra serve; `make test` installs it and runs this")

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here; Debian has it in the package chromium")

WITH_CHARTS = ("race", "fed", "scales")
SERVED = ("list", "empty list", "history", "history of one run", "across", "board", "board's history")
WIDTHS = (400, 800, 1600)
_AXE = """axe.run().then(found => found.violations
  .filter(each => ['serious', 'critical'].includes(each.impact))
  .map(each => `${each.id}: ${each.nodes.map(node => node.target.join(' ')).join(', ')}`))"""
# Boxes of text, neither within the other, that share more than a pixel. Heads of tables that are read out alone, since
# a narrow screen shows rows as cards, are left out.
_OVERLAPS = """(() => {
  const seen = (box, frame) => {  // of what a frame cuts off
    if (!frame) return box;
    const [left, right] = [Math.max(box.left, frame.left), Math.min(box.right, frame.right)];
    const [top, bottom] = [Math.max(box.top, frame.top), Math.min(box.bottom, frame.bottom)];
    return {left, right, top, bottom, width: Math.max(0, right - left), height: Math.max(0, bottom - top)};
  };
  const boxes = [...document.querySelectorAll('h1, h2, h3, p, li, td, th, a, button, label, caption, legend, summary')]
    .filter(each => each.checkVisibility({visibilityProperty: true, opacityProperty: true}) && each.textContent.trim())
    .map(each => [each, seen(each.getBoundingClientRect(), each.closest('.scroll')?.getBoundingClientRect())])
    .filter(([each, box]) => box.width && box.height && !each.closest('.skip') && !each.closest('svg'))
    .filter(([each]) => getComputedStyle(each.closest('thead') || document.body).position !== 'absolute');
  const found = [];
  boxes.forEach(([one, a], place) => boxes.slice(place + 1).forEach(([other, b]) => {
    if (one.contains(other) || other.contains(one)) return;
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1.5 && down > 1.5) found.push(`${one.textContent.slice(0, 40)} | ${other.textContent.slice(0, 40)}`);
  }));
  return found;
})()"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    scales = ranks(1, 2, 4)
    runs = {
        "race": run_of(HOSTILE, conditions="both"),
        "fed": fed(("torch", "onnxruntime", "openvino:latency")),
        "scales": a_run_at(scales, dict.fromkeys(scales, 1.0), exchange_ns=20e6),
    }
    texts = {name: page_of(results_of(run, "r", samples=samples)) for name, run in runs.items()}
    texts |= served(folder / "runs.sqlite")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in texts}


def served(store: Path) -> dict[str, str]:
    from fairlap.board.board import board_of
    from fairlap.board.pages import board_page, history_pages
    from fairlap.browse.application import application

    def get(url: str) -> str:
        return request(application(), url).text

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_STORE", str(store))
        first = stored(store, [daily_run(0)])
        texts = {"history of one run": get("/history?model=mlp")}
        # From one run to the next the tenth is slower by a fifth: a change that is found.
        ids = stored(store, [daily_run(day, torch=lambda day: 1.2 if day > 9 else 1.0) for day in range(1, 20)])
        run = a_run_with_everything()
        run.began_at = (FIRST + timedelta(days=30)).isoformat()
        with open_store(store) as opened:
            ids.append(keep_whole(opened, run))
            board = board_of(opened, None)
        return texts | {
            "list": get("/"),
            "empty list": get("/?model=none"),
            "history": get("/history?model=mlp"),
            "across": get(f"/across?run={first[0]}&run={ids[-1]}"),
            "board": board_page(board).decode(),
            "board's history": next(iter(history_pages(board).values())).decode(),
        }


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", [*WITH_CHARTS, *SERVED])
def test_axe_finds_nothing_serious(page: Page, pages: dict[str, Path], name: str, dark: bool) -> None:
    page.open(pages[name], dark=dark, charts=name in WITH_CHARTS)
    page.run(f"{files('axe_core_python').joinpath('axe.min.js').read_text()};1")
    assert page.run(_AXE) == []


def test_axe_finds_what_is_wrong(page: Page, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<!doctype html><html><body><img src='data:,'><input></body></html>")
    page.open(wrong, charts=False)
    page.run(f"{files('axe_core_python').joinpath('axe.min.js').read_text()};1")
    assert {each.partition(":")[0] for each in page.run(_AXE)} >= {"image-alt", "label", "html-has-lang"}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*WITH_CHARTS, *SERVED])
def test_nothing_overlaps_or_leaves_the_screen(page: Page, pages: dict[str, Path], name: str, width: int) -> None:
    page.open(pages[name], width=width, charts=name in WITH_CHARTS)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run(_OVERLAPS) == []


def test_what_overlaps_is_found(page: Page, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<!doctype html><p>one<p style='margin-top: -2em'>other")
    page.open(wrong, charts=False)
    found: Any = page.run(_OVERLAPS)
    assert len(found) == 1


@pytest.mark.parametrize("name", [*WITH_CHARTS, *SERVED])
def test_the_keyboard_reaches_every_link_and_control_in_order(page: Page, pages: dict[str, Path], name: str) -> None:
    page.open(pages[name], charts=name in WITH_CHARTS)
    reach = "a[href], button, input, select, textarea, summary, [tabindex]"
    visible = f"[...document.querySelectorAll('{reach}')].filter(e => e.checkVisibility() && !e.disabled)"
    assert page.run(f"{visible}.every(e => e.tabIndex === 0 || e.closest('svg') !== null)")


@pytest.mark.parametrize("name", WITH_CHARTS)
def test_on_paper_nothing_is_cut_off(page: Page, pages: dict[str, Path], name: str) -> None:
    page.open(pages[name], width=794)  # A4
    page.send("Emulation.setEmulatedMedia", media="print")
    try:
        cut = "[...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility())"
        assert page.run(f"{cut}.filter(e => getComputedStyle(e).overflowX !== 'visible').length") == 0
    finally:
        page.send("Emulation.setEmulatedMedia", media="")

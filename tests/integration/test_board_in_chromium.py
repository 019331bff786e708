"""A published board in a real browser: what is unchecked is hidden, and links lead to evidence and histories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import PROGRAM, Page, chromium
from fairlap.board.board import board_of
from fairlap.board.site import write_site
from fairlap.store.recording import begin_recording
from fairlap.store.store import open_store
from runs_to_show import HOSTILE, run_of, samples

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here; Debian has it in the package chromium")

MACHINES = ("Imaginary 9000", "An imaginary processor with a long name @ 2.70GHz")
CONTESTANTS = (*HOSTILE, "torch", "torch:compile", "openvino:latency")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    with open_store(folder / "runs.sqlite") as store:
        for day in (2, 3):
            for machine in MACHINES:
                run = run_of(CONTESTANTS, models=("mlp", "convnet"), batches=(1, 8), blocks=2)
                run.machine["cpu model"] = machine
                run.began_at = f"2026-01-0{day}T03:04:05+00:00"
                recording = begin_recording(store, run.plan, run.machine, run.began_at)
                for process in run.processes:
                    recording.keep(process, samples(process.block, process.contestant))
                recording.end(run.wall_s)
        write_site(board_of(store, None), folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def visible(page: Page, selector: str) -> int:
    found: int = page.run(f"[...document.querySelectorAll('{selector}')].filter(e => e.checkVisibility()).length")
    return found


def press(page: Page, selector: str) -> None:
    """Press the space bar on a control."""
    page.run(f"document.querySelector('{selector}').focus()")
    for kind in ("keyDown", "keyUp"):
        text = {"text": " "} if kind == "keyDown" else {}
        page.send("Input.dispatchKeyEvent", type=kind, key=" ", code="Space", windowsVirtualKeyCode=32, **text)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [380, 1200])
def test_it_fits_and_asks_for_nothing(page: Page, board: Path, width: int, dark: bool) -> None:
    page.requests.clear()
    page.open(board / "index.html", width=width, dark=dark, charts=False)
    assert page.run("document.documentElement.scrollWidth") == width
    assert visible(page, "legend") == 3
    assert page.complaints == []
    assert {url for url in page.requests if not url.startswith(("about:", "data:"))} == {
        (board / "index.html").as_uri()
    }


def test_what_is_unchecked_by_keyboard_is_hidden_until_all_is_shown(page: Page, board: Path) -> None:
    page.open(board / "index.html", charts=False)
    works, machines, contestants = 4, len(MACHINES), len(CONTESTANTS)
    every = (works, works * machines, works * machines * contestants)

    def shown() -> tuple[int, ...]:
        return tuple(visible(page, each) for each in ("section", "tbody tr", "tbody td"))

    assert shown() == every
    press(page, "#m0")
    assert shown() == (2, 2 * machines, 2 * machines * contestants)
    assert visible(page, "nav a") == 2
    press(page, "#c0")
    assert shown() == (2, 2, 2 * contestants)
    press(page, "#f0")
    assert shown() == (2, 2, 2 * (contestants - 1))
    assert not visible(page, ".none")
    press(page, "#c1")  # no machine is left
    assert shown() == (0, 0, 0)
    assert visible(page, ".none")
    press(page, "button[type=reset]")
    assert shown() == every


def test_a_click_leads_to_the_history_and_back_and_evidence_is_downloaded(
    page: Page, board: Path, tmp_path: Path
) -> None:
    page.open(board / "index.html", charts=False)
    history = page.run("document.querySelector('a[href^=history]').href")
    page.run("document.querySelector('a[href^=history]').click()")
    page.wait_for(f"location.href === {json.dumps(history)} && document.readyState === 'complete'")
    assert visible(page, "tbody tr") == 2
    page.run("document.querySelector('nav a').click()")
    page.wait_for("location.pathname.endsWith('index.html') && document.readyState === 'complete'")
    page.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    bundle = board / page.run("document.querySelector('a[download]').getAttribute('href')")
    page.run("document.querySelector('a[download]').click()")
    while not (tmp_path / bundle.name).is_file():  # the test's own time limit ends it
        page.run("new Promise(done => setTimeout(done, 50))")
    assert (tmp_path / bundle.name).stat().st_size == bundle.stat().st_size
    assert page.complaints == []

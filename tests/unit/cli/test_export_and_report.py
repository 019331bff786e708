"""``fairlap export`` and ``fairlap report``: a saved run in the format asked for, or a line that says why not."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import output, refusal
from fairlap.errors import NotAvailable
from fairlap.render.charts.parts.libraries import altair, vl_convert
from fairlap.render.outputs import read_rows
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.store.runs.run_file import save_run
from runs_for_rows import a_run
from runs_to_show import run_of


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    save_run(tmp_path / "monday.json", a_run())
    return tmp_path / "monday.json"


@pytest.mark.sanitized
def test_rows_go_to_standard_output_or_to_a_file_whose_name_reports_the_format(saved: Path, tmp_path: Path) -> None:
    assert output("export", saved).startswith('"run","recorded_at"')
    assert output("export", saved, "--format", "md").startswith("### fairlap: 1 slower, baseline `jax:fast`")
    assert output("export", saved, "-o", tmp_path / "rows.jsonl") == ""
    assert read_rows(tmp_path / "rows.jsonl") == results_of(a_run(), "monday").rows


@pytest.mark.sanitized
def test_the_baseline_and_a_price_by_name_are_those_that_were_asked_for(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "fairlap").mkdir()
    entry = "[[price]]\nname = 'mine'\nper_hour = 3.6\ncurrency = 'EUR'\ndated = 2026-01-31\n"
    (tmp_path / "fairlap" / "prices.toml").write_text(entry)
    exported = output("export", saved, "--format", "json", "--baseline", "torch", "--price", "mine")
    fast, slow = msgspec.json.decode(exported, type=list[Row])
    assert (fast.baseline, fast.verdict, fast.currency) == ("torch", "faster", "EUR")
    assert slow.absent["ratio"] == "it is the baseline"


@pytest.mark.sanitized
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--baseline", "torhc"], "E_REQUEST"),
        (["--price", "cheap"], "E_PRICE"),
        (["-o", "rows.xlsx"], "E_OUTPUT_FORMAT"),
        (["-o", "rows.html"], "E_OUTPUT_FORMAT"),
        (["-o", "/nowhere/rows.csv"], "E_FILE"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments: list[str], code: str, saved: Path) -> None:
    assert refusal("export", saved, *arguments).code == code


@pytest.mark.sanitized
@pytest.mark.parametrize("name", ["none.json", ".", "rubbish.json"])
def test_a_file_that_is_not_a_run_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "rubbish.json").write_bytes(b"\x00\xff{")
    assert str(tmp_path / name) in str(refusal("export", tmp_path / name))


@pytest.fixture
def to_show(tmp_path: Path) -> Path:
    save_run(tmp_path / "race.json", run_of(batches=(4,)))
    return tmp_path / "race.json"


@pytest.mark.slow
def test_a_saved_run_becomes_a_page_and_pictures(to_show: Path) -> None:
    html, charts = to_show.with_name("race.html"), to_show.with_name("charts")
    written = output("report", to_show, "-o", html, "--charts", charts, "--baseline", "jax", "--price", "1.2/h")
    assert str(html) in written
    assert "against jax" in html.read_text()
    assert (charts / "mlp-infer-fp32-batch-4-cost.svg").exists()


def test_what_cannot_be_written_or_read_is_refused(to_show: Path) -> None:
    rubbish, page = to_show.with_name("rubbish.json"), to_show.with_name("race.html")
    rubbish.write_bytes(b"\xff\x00{")
    assert refusal("report", to_show).code == "E_REQUEST"
    assert refusal("report", to_show, "-o", to_show.with_name("nowhere") / "race.html").code == "E_FILE"
    assert refusal("report", rubbish, "-o", page).code == "E_RUN_FILE"
    assert not page.exists()


def test_a_full_disk_leaves_the_page_of_before(to_show: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    html = to_show.with_name("race.html")
    html.write_text("before")

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert refusal("report", to_show, "-o", html).code == "E_FILE"
    assert html.read_bytes() == b"before"
    assert {path.name for path in to_show.parent.iterdir()} == {"race.json", "race.html"}


@pytest.mark.parametrize("needed", [altair, vl_convert])
def test_what_is_not_installed_is_reported_with_the_command_that_installs_it(
    needed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name in ("altair", "vl_convert"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotAvailable, match=r"pip install 'fairlap\[report\]'"):
        needed()

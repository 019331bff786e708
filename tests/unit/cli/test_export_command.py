"""``fairlap export``: a saved run in the format asked for, or a line that says why not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from command_line import output, refusal
from fairlap.render.outputs import read_rows
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.store.run_file import save_run
from runs_for_rows import a_run

pytestmark = pytest.mark.sanitized


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    save_run(tmp_path / "monday.json", a_run())
    return tmp_path / "monday.json"


def test_rows_go_to_standard_output_or_to_a_file_whose_name_reports_the_format(saved: Path, tmp_path: Path) -> None:
    assert output("export", saved).startswith('"run","recorded_at"')
    assert output("export", saved, "--format", "md").startswith("### fairlap: 1 slower, baseline `jax:fast`")
    assert output("export", saved, "-o", tmp_path / "rows.jsonl") == ""
    assert read_rows(tmp_path / "rows.jsonl") == results_of(a_run(), "monday").rows


def test_the_baseline_and_a_price_by_name_are_those_that_were_asked_for(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "fairlap").mkdir()
    entry = "[[price]]\nname = 'mine'\nper_hour = 3.6\ncurrency = 'EUR'\ndated = 2026-01-31\n"
    (tmp_path / "fairlap" / "prices.toml").write_text(entry)
    exported = output("export", saved, "--format", "json", "--baseline", "torch", "--price", "mine")
    fast, slow = msgspec.json.decode(exported, type=list[Row])
    assert (fast.baseline, fast.verdict, fast.currency) == ("torch", "faster", "EUR")
    assert slow.absent["ratio"] == "it is the baseline"


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


@pytest.mark.parametrize("name", ["none.json", ".", "rubbish.json"])
def test_a_file_that_is_not_a_run_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "rubbish.json").write_bytes(b"\x00\xff{")
    assert str(tmp_path / name) in str(refusal("export", tmp_path / name))

"""``fairlap export``: a saved run in the format asked for, or a line that says why not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from command_line import error_code
from fairlap.render.outputs import read_rows
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.store.run_file import save_run
from runs_for_rows import a_run

pytestmark = pytest.mark.sanitized


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_run(tmp_path / "monday.json", a_run())
    return tmp_path / "monday.json"


def export(*arguments: object, settings: Path | None = None) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **({"XDG_CONFIG_HOME": str(settings)} if settings else {})}
    command = [sys.executable, "-m", "fairlap", "export", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=variables)


def test_rows_go_to_standard_output_or_to_a_file_whose_name_reports_the_format(saved: Path, tmp_path: Path) -> None:
    done = export(saved)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('"run","recorded_at"')
    assert export(saved, "--format", "md").stdout.startswith("### fairlap: 1 slower, baseline `jax:fast`")
    assert export(saved, "-o", tmp_path / "rows.jsonl").stdout == ""
    assert read_rows(tmp_path / "rows.jsonl") == results_of(a_run(), "monday").rows


def test_the_baseline_and_a_price_by_name_are_those_that_were_asked_for(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "fairlap").mkdir()
    entry = "[[price]]\nname = 'mine'\nper_hour = 3.6\ncurrency = 'EUR'\ndated = 2026-01-31\n"
    (tmp_path / "fairlap" / "prices.toml").write_text(entry)
    done = export(saved, "--format", "json", "--baseline", "torch", "--price", "mine", settings=tmp_path)
    fast, slow = msgspec.json.decode(done.stdout, type=list[Row])
    assert (fast.baseline, fast.verdict, fast.currency) == ("torch", "faster", "EUR")
    assert slow.absent["ratio"] == "it is the baseline"


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["--baseline", "torhc"], 2, "E_REQUEST"),
        (["--price", "cheap"], 2, "E_PRICE"),
        (["-o", "rows.xlsx"], 2, "E_OUTPUT_FORMAT"),
        (["-o", "rows.html"], 2, "E_OUTPUT_FORMAT"),
        (["-o", "/nowhere/rows.csv"], 2, "E_FILE"),
    ],
)
def test_what_cannot_be_done_is_refused(
    arguments: list[str], status: int, code: str, saved: Path, tmp_path: Path
) -> None:
    done = export(saved, *arguments, settings=tmp_path)
    assert (done.returncode, error_code(done)) == (status, code)


@pytest.mark.parametrize("name", ["none.json", ".", "rubbish.json"])
def test_what_is_no_run_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "rubbish.json").write_bytes(b"\x00\xff{")
    done = export(tmp_path / name)
    assert done.returncode == 2
    assert str(tmp_path / name) in done.stderr
    assert len(done.stderr.splitlines()) == 1

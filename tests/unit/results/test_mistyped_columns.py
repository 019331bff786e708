"""The type checker refuses a column that no row has, though scenarios add theirs when they are loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]
CODE = """
from fairlap.history.across.lines import Line
from fairlap.results.row import Row

def known(row: Row, line: Line) -> object:
    return row.speed_up, row.largest_rate_per_s, row.time_to_score_s, line.time_ns, line.judged

def mistyped(row: Row, line: Line) -> object:
    return row.largest_rate_per_z, [each.time_to_scor_s for each in [row]], line.jugded
"""


@pytest.mark.slow
def test_a_mistyped_column_is_an_error_of_the_type_checker(tmp_path: Path) -> None:
    (tmp_path / "reads_rows.py").write_text(CODE)
    command = [sys.executable, "-m", "mypy", "--config-file", str(TOP / "pyproject.toml"), "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "reads_rows.py")],
        capture_output=True,
        text=True,
        cwd=TOP,
    )
    found = [line.partition("no column ")[2].split('"')[1] for line in done.stdout.splitlines() if "no column" in line]
    assert sorted(found) == ["jugded", "largest_rate_per_z", "time_to_scor_s"], done.stdout + done.stderr

"""What CONTRIBUTING.md tells people to add can be added, in a copy of the package.

It is a framework, a model, a scenario, a column, an option and an output format.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
ADDED = ("A framework", "A model", "A scenario", "A column", "An option", "An output format")
MOST_LINES = 50  # a screen


def diffs() -> dict[str, str]:
    page = (TOP / "CONTRIBUTING.md").read_text()
    return dict(re.findall(r"^### (.*?)$.*?^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Race the new framework on the new model, with the new option and in the new format, and return the rows."""
    copy = tmp_path_factory.mktemp("copy")
    left_out = shutil.ignore_patterns("__pycache__")
    for folder in ("python", "bench_models"):
        shutil.copytree(TOP / folder, copy / folder, symlinks=True, ignore=left_out)
    for name in ADDED:
        applied = subprocess.run(["git", "apply", "-"], input=diffs()[name], cwd=copy, capture_output=True, text=True)
        assert applied.returncode == 0, f"{name}: {applied.stderr}"
    compare = ("compare", "sums", "--on", "numpy", "--blocks", "1", "--seconds", "0.02", "--samples", "7")
    done = subprocess.run(
        [sys.executable, "-m", "fairlap", *compare, "-o", copy / "rows.tsv"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "python"), "FAIRLAP_STORE": str(copy / "store.sqlite")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with (copy / "rows.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_each_addition_is_one_diff_of_at_most_a_screen() -> None:
    assert set(diffs()) == set(ADDED)
    assert max(diff.count("\n") for diff in diffs().values()) <= MOST_LINES


def test_all_of_them_work_together(raced: list[dict[str, str]]) -> None:
    [row] = raced
    assert (row["framework"], row["workload"], row["outcome"]) == ("numpy", "sums", "finished")
    assert row["judged_by"] == "99th percentile of a call"
    assert 2 <= int(row["samples"]) <= 7 * 10  # in up to ten turns, of which the first is not counted

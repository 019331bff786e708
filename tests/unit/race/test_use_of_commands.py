"""Commands are compared by CPU time and peak memory too; the programs' own figures are known."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke

pytestmark = pytest.mark.slow

RACE = ("--blocks", "7", "--seconds", "0.02", "--conditions", "as-found", "--threads", "1", "--quiet")
ALLOCATES = "import time; x = b'x' * ({mib} << 20); time.sleep({seconds})"


def program(mib: int, seconds: float) -> str:
    return shlex.join([sys.executable, "-I", "-S", "-c", ALLOCATES.format(mib=mib, seconds=seconds)])


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "store.sqlite"))
    monkeypatch.chdir(tmp_path)


def test_rows_and_verdicts_have_the_memory_and_the_cpu_time_of_a_programs_runs() -> None:
    """One allocates 10 % more and computes for the copy of it; the other sleeps longer, which is no CPU time."""
    given = ("--command", f"small={program(100, 0.05)}", "--command", f"large={program(150, 0)}")
    done = invoke("compare", *given, *RACE, "-o", "run.json", "-o", "run.html", "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    rows = {row["contestant"]: row for row in found["rows"]}
    memory = {name: row["peak_memory_bytes"]["value"] for name, row in rows.items()}
    assert memory["large"] - memory["small"] == pytest.approx(50 << 20, rel=0.02)
    assert rows["small"]["cpu_time_ns"]["value"] < rows["small"]["latency_p50_ns"]["value"] - 40e6
    [work] = found["work_results"]
    by_metric = {each["metric"]: each["comparisons"] for each in work["other_quantities"]}
    [compared] = by_metric["peak memory"]
    ratio = compared["ratio"] if compared["a"] == "large" else 1 / compared["ratio"]
    assert ratio == pytest.approx(memory["large"] / memory["small"], rel=0.01)
    assert compared["verdict"] in ("faster", "slower")
    assert len(by_metric["CPU time"]) == 1
    assert "peak memory of" in Path("run.html").read_text()

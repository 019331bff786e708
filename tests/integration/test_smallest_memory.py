"""The smallest memory of contestants whose need is known, through the whole of a race."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairlap.race.planning.plan import Limits
from fairlap.race.run import Run
from fairlap.render.outputs import read_rows
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.store.runs.run_file import load_run
from one_block import run_of_one_block

METERED = Path(__file__).parent / "metered"
MIB = 2**20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory of another process is limited on Linux only")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = os.pathsep.join(filter(None, [str(METERED), os.environ.get("PYTHONPATH", "")]))
    for name, value in {
        "PYTHONPATH": path,
        "FAIRLAP_CACHE": str(tmp_path / "cache"),
        "FAIRLAP_CONTROL_GROUP": "none",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",  # threads would take 64 MiB of address space each as long as there is room
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
def test_what_a_contestant_holds_is_what_its_smallest_memory_is_larger_by(tmp_path: Path) -> None:
    asked = ["compare", "callable", "--on", "python:call=held_memory.little,python:call=held_memory.much"]
    wanted = ["--blocks", "1", "--seconds", "0.05", "--conditions", "as-found", "--threads", "1", "--min-memory"]
    files = ["-o", "run.json", "-o", "rows.csv", "-o", "page.html", "-o", "rows.md"]
    command = [sys.executable, "-m", "fairlap", *asked, *wanted, *files]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    rows = {row.contestant.rpartition(".")[2]: row for row in read_rows(tmp_path / "rows.csv")}
    little, much = (_bytes_of(rows[name]) for name in ("little", "much"))
    finer = sum(row.min_memory_resolution_bytes or 0 for row in rows.values())
    assert abs(much - little - 300 * MIB) <= finer + 5 * MIB  # how Python lays its heap out differs from start to start
    assert {row.min_memory_limit for row in rows.values()} == {"address space"}
    assert all(6 <= (row.min_memory_tries or 0) <= 12 for row in rows.values())
    assert ran.stdout.count("(address space; within ") == 2
    assert "MiB (address space)" in (tmp_path / "rows.md").read_text()
    assert "MiB, address space" in (tmp_path / "page.html").read_text()
    saved = load_run(tmp_path / "run.json")
    assert saved.plan.min_memory
    assert sorted(process.smallest_memory.bytes or 0 for process in saved.processes if process.smallest_memory) == [
        little,
        much,
    ]
    _require_that_it_runs_in(round(much), "held_memory.much")


def _bytes_of(row: Row) -> float:
    assert row.min_memory_bytes is not None, row.absent["min_memory_bytes"]
    return row.min_memory_bytes


def _require_that_it_runs_in(limit_bytes: int, call: str) -> None:
    """Two thirds of what it needs do not do; a little more than what was found does."""
    for limit, outcomes in ((1.1, {"finished"}), (0.67, {"failed", "out_of_memory", "crash", "exit"})):
        [process] = _raced(call, Limits(memory_bytes=round(limit * limit_bytes))).processes
        assert process.outcome in outcomes, process.message


def _raced(call: str, limits: Limits | None = None, *, min_memory: bool = False) -> Run:
    work = Work("callable", 1)
    return run_of_one_block(f"python:call={call}", work, seconds=0.05, limits=limits or Limits(), min_memory=min_memory)


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
def test_where_groups_can_be_made_they_are_what_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's part is played, and its groups limit nothing: so the search goes down to its resolution."""
    groups, limits = tmp_path / "groups", []
    groups.mkdir()
    mkdir, rmdir = os.mkdir, os.rmdir

    def make(path: Path | str, mode: int = 0o777) -> None:
        mkdir(path, mode)
        if Path(path).parent == groups:
            (Path(path) / "memory.max").write_text("")
            (Path(path) / "memory.swap.max").write_text("")

    def remove(path: Path | str, **others: int) -> None:
        if Path(path).parent == groups:
            limits.append((Path(path) / "memory.max").read_text())
            for file in Path(path).iterdir():
                file.unlink()
        rmdir(path, **others)

    monkeypatch.setattr(os, "mkdir", make)
    monkeypatch.setattr(os, "rmdir", remove)
    monkeypatch.setenv("FAIRLAP_CONTROL_GROUP", str(groups))
    [process] = _raced("held_memory.little", min_memory=True).processes
    found = process.smallest_memory
    assert found is not None
    assert (found.limit, found.tries) == ("control group", 7)
    assert found.bytes == found.resolution_bytes
    tried = [int(text) for text in limits[1:]]  # the first was a look whether it can be done
    assert tried[0] == round(1.1 * process.memory.bytes["peak"])
    assert tried == [*sorted(tried, reverse=True)]
    assert tried[-2:] == [found.bytes] * 2
    assert list(groups.iterdir()) == []


@pytest.mark.usefixtures("environment")
def test_who_never_finished_has_no_smallest_memory_and_its_row_says_why() -> None:

    run = _raced("held_memory.much", Limits(memory_bytes=200 * MIB), min_memory=True)
    [row] = results_of(run, "r").rows
    assert row.min_memory_bytes is None
    assert row.absent["min_memory_bytes"] == row.message


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
def test_nobody_is_tried_unless_it_was_asked_for() -> None:

    run = _raced("held_memory.little")
    [row] = results_of(run, "r").rows
    assert "--min-memory" in row.absent["min_memory_bytes"]
    assert row.peak_memory_while_running_bytes is not None

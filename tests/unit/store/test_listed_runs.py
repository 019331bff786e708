"""``fairlap.runs``: what the store holds, by a query of SQLite's own, and the results of each run."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import fairlap
import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.run import Run
from fairlap.results.results import results_of
from fairlap.store.runs.listed import ListedRun
from fairlap.store.store import open_store
from runs_for_rows import a_run, crashed
from runs_in_store import keep_whole
from runs_to_show import run_of

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def on_day(run: Run, day: int) -> Run:
    run.began_at = (BEGAN + timedelta(days=day)).isoformat()
    return run


def drawn(run: Run) -> Run:
    """Make all contestants equally slow, so that none wins."""
    for process in run.processes:
        timing = process.timings["wall_ns"]
        process.timings["wall_ns"] = msgspec.structs.replace(timing, p50_ns=1e6 + 1e3 * (process.block % 3))
    return run


@pytest.fixture(scope="module")
def four_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Store one that jax:fast wins, one of two works, one without a winner, one of a single contestant."""
    path = tmp_path_factory.mktemp("store") / "runs.sqlite"
    alone = a_run(listed="torch")
    crashed(alone.processes[0])
    with open_store(path) as store:
        for day, run in enumerate((a_run(), run_of(), drawn(a_run()), alone)):
            keep_whole(store, on_day(run, day))
    return path


@pytest.fixture
def path(four_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the store with these runs for this test alone."""
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / four_runs.name))
    return Path(shutil.copy(four_runs, tmp_path))


def by_sqlite(path: Path, query: str) -> list[tuple[str, ...]]:
    with sqlite3.connect(path) as db:
        return list(db.execute(query))


@pytest.mark.slow
def test_runs_are_those_of_the_store_the_newest_first(path: Path) -> None:
    found = fairlap.runs()
    stored = by_sqlite(path, "SELECT id, state, began_at FROM runs ORDER BY id DESC")
    assert [(run.id, run.state, run.when and run.when.isoformat()) for run in found] == stored
    assert [run.when for run in reversed(found)] == [BEGAN + timedelta(days=day) for day in range(4)]
    assert [run.id for run in fairlap.runs(limit=2)] == [stored[0][0], stored[1][0]]
    assert len(fairlap.runs(limit=None)) == 4


def test_a_winner_beat_all_others_in_every_work(path: Path) -> None:
    alone, equal, several, clear = fairlap.runs()
    assert (clear.winner, clear.title) == ("jax:fast", "mlp · infer · fp32 · batch 4")
    assert equal.winner is None
    assert alone.winner is None  # it beat nobody
    rows = by_sqlite(path, f"SELECT DISTINCT contestant FROM results WHERE run = '{several.id}' AND place = '1'")
    assert [(several.winner,)] == rows == [("torch",)]
    assert several.title == "mlp · infer · fp32 · batch 4 and 1 more"
    assert several.contestants == ("torch", "jax", "wrong")
    for run in (alone, equal, several, clear):
        assert run.id in repr(run)


def test_results_are_those_of_the_run_that_was_stored(path: Path) -> None:
    clear = fairlap.runs()[-1]
    assert clear.results().rows == results_of(on_day(a_run(), 0), clear.id).rows
    assert [row.contestant for row in clear.results().rows] == ["jax:fast", "torch"]
    assert clear.results().run_id == clear.id


@pytest.mark.parametrize(
    ("asked", "days"),
    [
        ({"model": "mlp"}, [3, 2, 1, 0]),
        ({"model": "convnet"}, []),
        ({"on": "jax:fast"}, [2, 0]),
        ({"on": "jax"}, [2, 1, 0]),
        ({"on": ["torch", "jax:fast"]}, [2, 0]),
        ({"on": ("wrong",), "model": "mlp"}, [1]),
        ({"since": "2026-01-04"}, [3, 2]),
        ({"since": date(2026, 1, 5)}, [3]),
        ({"since": BEGAN + timedelta(days=1)}, [3, 2, 1]),
    ],
)
def test_runs_are_found_by_model_contestants_and_date(path: Path, asked: dict[str, object], days: list[int]) -> None:
    found: tuple[ListedRun, ...] = fairlap.runs(**asked)  # type: ignore[arg-type]
    assert [run.when and (run.when - BEGAN).days for run in found] == days


def test_without_a_store_there_are_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "none.sqlite"))
    assert fairlap.runs() == ()
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize("asked", [{"model": 5}, {"since": "yesterday"}, {"limit": 0}, {"limit": True}, {"limit": "3"}])
def test_what_is_no_name_date_or_number_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        fairlap.runs(**asked)  # type: ignore[arg-type]
    assert refused.value.code == "E_REQUEST"


def of_model(run: Run, model: str) -> Run:
    work = msgspec.structs.replace(run.plan.works[0], model=model)
    run.plan = msgspec.structs.replace(run.plan, works=(work,))
    for process in run.processes:
        process.work_id = work.id
    return run


@pytest.mark.slow_but("days0", "days3", "days7")
@pytest.mark.parametrize(
    ("model", "days"),
    [
        ("x.onnx", [2, 1, 0]),
        ("models/x.onnx", [1]),
        ("x.onnx[batch=8]", [2]),
        ("models/x.onnx[batch=8,n=1]", [1]),
        ("ax.onnx", [3]),
        ("y.onnx", []),
        ("models", []),
        ("%.onnx", []),
    ],
)
def test_the_name_of_a_file_finds_its_runs_whatever_was_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, days: list[int]
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    with open_store() as store:
        for day, own in enumerate(("x.onnx", "models/x.onnx[batch=8,n=1]", "x.onnx[batch=8]", "ax.onnx")):
            keep_whole(store, on_day(of_model(a_run(blocks=2), own), day))
    assert [run.when and (run.when - BEGAN).days for run in fairlap.runs(model=model)] == days

"""A store and a run file that a fairlap wrote whose processes named works by label: opened, they have ids."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from operator import attrgetter
from pathlib import Path

import pytest
from fairlap.history.trends import trends_of
from fairlap.race.run import RUN_FORMAT
from fairlap.results.results import results_of
from fairlap.store.figures import machines_of_runs, recorded_figures
from fairlap.store.recording import begin_recording
from fairlap.store.repair import repair_store
from fairlap.store.runs.run_file import load_run
from fairlap.store.schema import FIRST_SCHEMA, STEPS
from fairlap.store.store import open_store

OLDER = Path(__file__).with_name("older")
FIRST = "mlp · infer · fp32 · batch 4"
_SCHEMA = 7  # of the older store
SCALED = "mlp · train sgd:lr=0.01 · fp32 · batch 48"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    path = tmp_path / "runs.sqlite"
    path.write_bytes(gzip.decompress((OLDER / "schema-7.sqlite.gz").read_bytes()))
    return path


def test_every_run_of_an_older_store_is_read_as_before(older: Path) -> None:
    with open_store(older) as store:
        runs = {run.works: run for run in store.runs()}
        for run in runs.values():
            saved = store.load(run.run)
            assert saved.format == RUN_FORMAT
            assert {process.work_id for process in saved.processes} == {work.id for work in saved.plan.works}
            assert results_of(saved, run.run).rows == store.rows(run.run)
        [net] = [run for run in runs if run[0].startswith("net.onnx")]
        scaled = runs[f"{SCALED} · 1 thread", f"{SCALED} · 2 threads"]
        assert [placed.work for placed in scaled.placed] == [each for each in scaled.works for _ in range(2)]
        assert [placed.text for placed in runs[net].placed] == ["1 jax:fast", "2 torch 2.00×"]
        inspected = store.load(runs[FIRST,].run)
        assert set(map(attrgetter("work_id"), (*inspected.profiles, *inspected.compilations))) == {
            work.id for work in inspected.plan.works
        }


def test_figures_of_before_and_after_are_one_series(older: Path) -> None:
    with open_store(older) as store:
        run = next(store.load(each.run) for each in store.runs() if each.works == (FIRST,))
        recording = begin_recording(store, run.plan, run.machine, run.began_at)
        for process in run.processes:
            recording.keep(process, {})
        recording.end(run.wall_s)
        figures = store.ask(recorded_figures, "mlp", "")
        trends = trends_of(figures, store.ask(machines_of_runs, "mlp", ""), model="mlp")
    of_two = {(trend.work, trend.conditions, trend.threads) for trend in trends if len(trend.runs) == 2}
    assert of_two == {(FIRST, "controlled", 1)}
    assert {(trend.work, trend.threads) for trend in trends if trend.work == SCALED} == {(SCALED, 1), (SCALED, 2)}


def test_the_store_as_it_was_is_kept_beside(older: Path) -> None:
    before = older.read_bytes()
    with open_store(older):
        pass
    copy = older.with_name(f"{older.name}.schema-{_SCHEMA - FIRST_SCHEMA + 1}")
    with closing(sqlite3.connect(copy)) as kept, closing(sqlite3.connect(older)) as now:
        assert (
            kept.execute("SELECT process FROM processes").fetchall()
            != now.execute("SELECT process FROM processes").fetchall()
        )
        assert kept.execute("PRAGMA user_version").fetchone() == (_SCHEMA,)
        assert now.execute("PRAGMA user_version").fetchone() == (FIRST_SCHEMA + len(STEPS) - 1,)
    assert before != older.read_bytes()


def test_a_damaged_older_store_is_repaired_with_ids(older: Path) -> None:
    with closing(sqlite3.connect(older, isolation_level=None)) as db:
        db.execute("UPDATE samples SET crc32 = crc32 + 1 WHERE number = 1")
    assert len(repair_store(older).runs) == 4
    with open_store(older) as store:
        for run in store.runs():
            saved = store.load(run.run)
            assert {process.work_id for process in saved.processes} == {work.id for work in saved.plan.works}


def test_what_is_no_run_of_fairlaps_does_not_keep_an_older_store_from_being_opened(older: Path) -> None:
    with closing(sqlite3.connect(older, isolation_level=None)) as db:
        db.execute("UPDATE runs SET plan = 'no plan' WHERE number = 1")
        db.execute("UPDATE processes SET process = '[1' WHERE run = 2")
        db.execute("UPDATE rows SET ranked_precisions = '{' WHERE workload = 'mlp'")
    with open_store(older) as store:
        assert len(store.runs()) == 4


def test_an_older_run_file_is_read_and_imported(tmp_path: Path) -> None:
    file = tmp_path / "older.json"
    file.write_bytes(gzip.decompress((OLDER / "run-3.json.gz").read_bytes()))
    run = load_run(file)
    assert {process.work_id for process in run.processes} == {work.id for work in run.plan.works}
    assert set(map(attrgetter("work_id"), (*run.profiles, *run.compilations))) == {work.id for work in run.plan.works}
    with open_store(tmp_path / "runs.sqlite") as store:
        assert {row.work_id for row in store.rows(store.import_from(file))} == {work.id for work in run.plan.works}

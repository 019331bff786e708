"""What was kept comes back as it was, is found, goes, and moves to another store."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.run import Run
from fairlap.request.fields.load import Load
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from fairlap.results.flat_row import columns, flat
from fairlap.results.results import results_of
from fairlap.store.errors import NoSuchRun
from fairlap.store.file_store import Store
from fairlap.store.opening import store_path
from fairlap.store.recording import begin_recording, resume_recording
from fairlap.store.runs.run_file import load_run, save_run
from fairlap.store.search import Wanted
from fairlap.store.store import open_store
from fairlap.store.tables import row_of
from runs_at_scales import threads
from runs_for_rows import a_run
from runs_in_store import a_run_with_everything, keep_whole, recording_of, samples_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "runs.sqlite") as opened:
        yield opened


def test_a_run_comes_back_as_it_was(store: Store) -> None:
    run = a_run_with_everything()
    kept = store.load(keep_whole(store, run))
    assert msgspec.json.encode(kept) == msgspec.json.encode(run)
    assert isinstance(kept.processes[0].cores, tuple)


def test_every_sample_comes_back_bit_for_bit(store: Store) -> None:
    run = a_run_with_everything()
    run_id = keep_whole(store, run)
    for process in run.processes:
        found = store.samples(run_id, process.block, process.contestant)
        assert list(found) == list(samples_of(process))
        for name, values in samples_of(process).items():
            assert found[name].tobytes() == values.tobytes()


def test_samples_of_another_kind_of_number_are_kept_as_float64(store: Store) -> None:
    run = a_run()
    recording = begin_recording(store, run.plan, run.machine, run.began_at)
    recording.keep(run.processes[0], {"wall_ns": np.arange(10, dtype=">i4")[::2]})
    found = store.samples(recording.run, run.processes[0].block, run.processes[0].contestant)
    assert found["wall_ns"].tolist() == [0, 2, 4, 6, 8]


def test_asking_for_samples_of_a_process_that_never_was_is_reported(store: Store) -> None:
    keep_whole(store, a_run())
    with pytest.raises(InvalidRequest, match="paddle in block 0"):
        store.samples("last", 0, "paddle")


def test_rows_come_back_as_they_were_drawn(store: Store) -> None:
    run = a_run_with_everything()
    run_id = keep_whole(store, run)
    assert store.rows(run_id) == results_of(run, run_id).rows


@pytest.mark.parametrize("row", results_of(a_run(blocks=3), "r").rows + results_of(a_run_with_everything(), "r").rows)
def test_a_flat_row_is_put_together_again(row: object) -> None:
    assert row_of(flat(row)) == row  # type: ignore[arg-type]


def test_the_table_and_the_view_have_the_columns_of_the_row(store: Store) -> None:
    keep_whole(store, a_run())
    with sqlite3.connect(store.path) as db:
        in_table = [column[1] for column in db.execute("PRAGMA table_info(rows)")]
        assert in_table == [column.name for column in columns()]
        view = db.execute("SELECT * FROM results WHERE contestant = 'torch'")
        names = [column[0] for column in view.description]
        [found] = [dict(zip(names, cells, strict=True)) for cells in view]
    assert names == ["run_state", "run_ended_early", *in_table]
    assert (found["run_state"], found["workload"], found["verdict"]) == ("finished", "mlp", "slower")


def test_every_table_is_documented(store: Store) -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/find-a-run.md").read_text()
    listed = [cell for line in page.splitlines() if line.startswith("| `") for cell in line.split("|")[1:2]]
    documented = {name for cell in listed for name in re.findall(r"`(\w+)`", cell)}
    states = {"running", "finished", "interrupted", "killed"}
    with sqlite3.connect(store.path) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    assert tables | states == documented


def test_rows_kept_by_an_older_fairlap_are_drawn_again_where_a_column_is_new(
    store: Store,
) -> None:
    run_id = keep_whole(store, a_run())
    store.close()
    with sqlite3.connect(store.path) as db:
        db.execute("ALTER TABLE rows DROP COLUMN processes")
    with open_store(store.path) as again:
        assert {row.processes for row in again.rows(run_id)} == {8}
        keep_whole(again, a_run())
    with sqlite3.connect(store.path) as db:
        assert db.execute("SELECT processes FROM rows").fetchall() == [(None,), (None,), (8,), (8,)]


def test_while_a_run_goes_on_it_can_be_shown(store: Store) -> None:
    run = a_run()
    recording = recording_of(store, run, processes=6)
    with open_store(store.path, reading=True) as other:
        assert other.load("last").processes == run.processes[:6]
        assert other.state(recording.run) == "running"
        assert [row.processes for row in other.rows("last")] == [3, 3]
        with pytest.raises(InvalidRequest, match="recorded"):
            other.remove("last")


def test_a_process_that_is_kept_again_replaces_what_was_known_and_its_samples_stay(store: Store) -> None:
    run = a_run()
    recording = recording_of(store, run, processes=1)
    run.processes[0].elapsed_s = 7.5
    recording.keep(run.processes[0])
    assert store.load("last").processes == [run.processes[0]]
    assert set(store.samples("last", 0, run.processes[0].contestant)) == {"wall_ns", "host_issue_ns"}


def test_an_interrupted_run_goes_on_where_it_ended(store: Store) -> None:
    run = a_run()
    first = recording_of(store, run, processes=6)
    first.end({"whole": 1.0}, interrupted=True)
    assert store.state("last") == "interrupted"
    second = resume_recording(store, "last", run.processes[:6])
    for process in run.processes[6:]:
        second.keep(process, samples_of(process))
    second.end(run.wall_s, "the target is reached")
    assert store.load("last").processes == run.processes
    assert store.load("last").ended_early == "the target is reached"
    assert store.rows("last")[0].processes == 8
    [summary] = store.runs()
    assert (summary.run, summary.state, summary.recorded_processes, summary.planned_processes) == (
        first.run,
        "finished",
        16,
        16,
    )


def at(began_at: str, listed: str = "torch,jax:fast", model: str = "") -> Run:
    run = a_run(blocks=3, listed=listed)
    run.began_at = began_at
    if model:
        works = (msgspec.structs.replace(run.plan.works[0], model=model),)
        run.plan = msgspec.structs.replace(run.plan, works=works)
        for process in run.processes:
            process.work_id = works[0].id
    return run


def test_runs_are_listed_the_newest_first_and_found_by_what_is_wanted(store: Store) -> None:
    old = keep_whole(store, at("2026-01-02T03:04:05+00:00"))
    mid = keep_whole(store, at("2026-02-02T03:04:05+00:00", "jax,openvino", "convnet"))
    new = keep_whole(store, at("2026-03-02T01:30:00+02:00"))
    found = {
        "all": store.runs(),
        "limited": store.runs(limit=2),
        "model": store.runs(Wanted(model="convnet")),
        "name": store.runs(Wanted(on="jax:fast")),
        "framework": store.runs(Wanted(on="jax")),
        "since": store.runs(Wanted(since="2026-02-01")),
        "both": store.runs(Wanted(on="jax", model="mlp", since="2026-02-01")),
        "none": store.runs(Wanted(model="no such")),
    }
    assert {key: [summary.run for summary in each] for key, each in found.items()} == {
        "all": [new, mid, old],
        "limited": [new, mid],
        "model": [mid],
        "name": [new, old],
        "framework": [new, mid, old],
        "since": [new, mid],
        "both": [new],
        "none": [],
    }
    assert found["all"][0].began_at == "2026-03-01T23:30:00+00:00"
    [summary] = found["model"]
    assert summary.works == ("convnet · infer · fp32 · batch 4",)
    assert summary.contestants == ("jax", "openvino")
    assert [placed.contestant for placed in summary.placed] == ["openvino", "jax"]


def test_an_id_is_short_reports_the_time_and_sorts_by_it(store: Store) -> None:
    early = keep_whole(store, at("2026-01-02T03:04:05+00:00"))
    late = keep_whole(store, at("2026-01-02T03:04:06+00:00"))
    assert re.fullmatch(r"20260102-030405-[a-z0-9]{3}", early)
    assert early < late
    assert store.id_of("last") == late
    assert store.id_of(early[:15]) == early
    assert store.id_of(early) == early


def test_an_id_is_found_by_its_end_where_no_id_begins_so(store: Store) -> None:
    first = keep_whole(store, at("2026-01-02T03:04:05+00:00"))
    second = keep_whole(store, at("2026-01-02T03:04:06+00:00"))
    assert store.id_of(first[-6:]) == first
    assert store.id_of(second[2:]) == second
    with pytest.raises(NoSuchRun) as refused:
        store.id_of(f"x{first}")
    assert refused.value.code == "E_NO_RUN"


@pytest.mark.parametrize(
    ("text", "words"),
    [("2026", "begins more than one id"), ("1999", "there is no run '1999'"), ("", "there is no run ''")],
)
def test_a_name_that_fits_no_run_or_several_is_reported(store: Store, text: str, words: str) -> None:
    keep_whole(store, at("2026-01-02T03:04:05+00:00"))
    keep_whole(store, at("2026-01-02T03:04:05+00:00"))
    with pytest.raises(NoSuchRun, match=re.escape(words)):
        store.load(text)


def test_last_of_an_empty_store_is_reported(store: Store) -> None:
    with pytest.raises(NoSuchRun):
        store.load("last")


def test_a_removed_run_gives_its_space_back(store: Store) -> None:
    keep_whole(store, at("2026-01-02T03:04:05+00:00"))
    run = at("2026-01-03T03:04:05+00:00")
    recording = begin_recording(store, run.plan, run.machine, run.began_at)
    for process in run.processes:
        recording.keep(process, samples_of(process, 100_000))
    recording.end({})
    store.remove("last")
    assert len(store.runs()) == 1
    store.close()
    assert store.path.stat().st_size < 500_000
    with sqlite3.connect(store.path) as db:
        assert db.execute("SELECT count(*) FROM rows").fetchone() == (2,)
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_run_of_unknown_time_is_the_oldest(store: Store, tmp_path: Path) -> None:
    keep_whole(store, a_run())
    run = a_run()
    run.began_at = ""
    save_run(tmp_path / "race.json", run)
    assert store.import_from(tmp_path / "race.json") == store.runs()[-1].run
    assert store.load(store.runs()[-1].run).began_at == ""


def test_the_store_lies_where_the_user_says_else_with_the_users_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FAIRLAP_STORE", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert store_path() == tmp_path / ".local/share/fairlap/runs.sqlite"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert store_path() == Path("/data/fairlap/runs.sqlite")
    monkeypatch.setenv("FAIRLAP_STORE", "/elsewhere/mine.sqlite")
    assert store_path() == Path("/elsewhere/mine.sqlite")


def test_a_saved_run_with_numbers_that_are_not_finite_can_be_read_again(tmp_path: Path) -> None:
    run = a_run_with_everything()
    save_run(tmp_path / "race.json", run)
    again = load_run(tmp_path / "race.json")
    assert msgspec.json.encode(again) == msgspec.json.encode(run)
    assert again.processes[4].errors[-1].cosine is None
    assert again.processes[5].errors[-1].worst_absolute is None


def works_of_many_kinds() -> tuple[Work, ...]:
    training = Training(Sgd(lr=0.01))
    return (
        Work("mlp", 4),
        Work("mlp", 4, "train", training=training),
        *(Work("mlp", 8, "train", training=training, scale=scale) for scale in threads(1, 2)),
        Work("mlp", 1, load=Load(0.99, 0.02)),
        Work("mlp", 16, together=("fp32", "bf16")),
    )


@pytest.mark.slow
def test_of_runs_that_began_in_one_second_the_newest_is_the_last(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.sqlite") as store:
        for _ in range(15):
            newest = keep_whole(store, a_run())
            assert store.id_of("last") == newest


def test_the_summary_of_a_run_has_the_places_on_works_of_every_kind(tmp_path: Path) -> None:
    works = works_of_many_kinds()
    one = a_run()
    plan = msgspec.structs.replace(one.plan, works=works)
    with open_store(tmp_path / "runs.sqlite") as store:
        recording = begin_recording(store, plan, {}, one.began_at)
        recording.end({}, rows=[
            msgspec.structs.replace(
                row, run=recording.run, work_id=work.id, workload=work.model, batch=work.batch, mode=work.mode,
                precision=work.precisions[-1], ranked_precisions=list(work.precisions),
                scale="" if work.scale is None else work.scale.text,
            )
            for work in works
            for row in results_of(one, recording.run).rows
        ])  # fmt: skip
        [found] = store.runs()
    _, second = results_of(one, recording.run).rows
    assert second.ratio is not None  # of the verdict, not of the medians
    expected = f"1 jax:fast, 2 torch {second.ratio.value:.2f}×"
    assert {work: found.standing(work) for work in found.works} == {work.label: expected for work in works}

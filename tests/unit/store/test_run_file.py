"""A run moves from one store to another with nothing lost; a file that does not hold together is refused whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.results.prices import Price
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import SmallestMemory
from fairlap.store.file_store import Store
from fairlap.store.runs.run_file import RunFile, load_run, load_run_file, run_document, save_run, state_of
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import a_run_with_everything, keep_whole, recording_of
from runs_with_compilations import with_compilations


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "runs.sqlite") as opened:
        yield opened


def test_a_run_moves_to_another_store_with_nothing_lost(store: Store, tmp_path: Path) -> None:
    run = a_run_with_everything()
    run_id = keep_whole(store, run)
    store.export_to(run_id, tmp_path / "run.json")
    with open_store(tmp_path / "other.sqlite") as other:
        assert other.import_from(tmp_path / "run.json") == run_id
        assert msgspec.json.encode(other.load("last")) == msgspec.json.encode(store.load("last"))
        assert other.rows("last") == store.rows("last")
        for process in run.processes:
            ours, theirs = (each.samples("last", process.block, process.contestant) for each in (store, other))
            assert {name: raw.tobytes() for name, raw in ours.items()} == {
                name: raw.tobytes() for name, raw in theirs.items()
            }
        assert other.runs() == store.runs()
        other.export_to("last", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "run.json").read_bytes()


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"schema": "fairlap.suite/1", "races": []}, "fairlap suite show"),
        ({"schema": "fairlap.choice/1", "candidates": []}, "fairlap choose"),
        ({"schema": "fairlap.plan/2", "works": []}, "fairlap compare --plan"),
        ({"schema": "fairlap.judgement/1"}, "fairlap.judgement"),
        ({"schema": "fairlap.run/4"}, "is not a run file"),
        ({"works": []}, "is not a run file"),
    ],
)
def test_the_document_of_another_command_is_named_with_what_reads_it(
    tmp_path: Path, document: dict[str, object], pointer: str
) -> None:
    file = tmp_path / "found.json"
    file.write_text(json.dumps(document))
    for read in (load_run, load_run_file):
        with pytest.raises(InvalidRequest) as refused:
            read(file)
        assert refused.value.code == "E_RUN_FILE"
        assert pointer in str(refused.value)
        assert str(file) in str(refused.value)


def test_what_compiling_did_is_stored_as_it_is_found_and_moves_with_its_run(store: Store, tmp_path: Path) -> None:
    run = with_compilations(a_run())
    recording = recording_of(store, run)
    for found in run.compilations:
        recording.keep_compilation(found)
    assert store.load("last").compilations == run.compilations
    recording.end({})
    store.export_to("last", tmp_path / "run.json")
    with open_store(tmp_path / "other.sqlite") as other:
        other.import_from(tmp_path / "run.json")
        assert other.load("last").compilations == run.compilations
        assert other.rows("last") == store.rows("last")


def test_a_run_is_not_over_while_a_contestant_was_not_asked_what_compiling_did() -> None:
    run = with_compilations(a_run())
    document = run_document(run)
    assert state_of(document) == "finished"
    document.compilations = run.compilations[:1]
    assert state_of(document) == "interrupted"


def test_the_price_and_the_baseline_of_a_race_move_with_its_rows(store: Store, tmp_path: Path) -> None:
    run = a_run()
    run_id = keep_whole(store, run)
    store.replace_rows(run_id, results_of(run, run_id, baseline="torch", price=Price(2.0, "EUR")).rows)
    store.export_to(run_id, tmp_path / "run.json")
    with open_store(tmp_path / "other.sqlite") as other:
        other.import_from(tmp_path / "run.json")
        assert {row.currency for row in other.rows(run_id)} == {"EUR"}
        assert {row.baseline for row in other.rows(run_id)} == {"torch"}


def test_a_run_whose_rows_an_older_fairlap_wrote_is_taken_in_with_rows_of_today(store: Store, tmp_path: Path) -> None:
    keep_whole(store, a_run())
    store.export_to("last", tmp_path / "run.json")
    document = json.loads((tmp_path / "run.json").read_bytes())
    for row in document["rows"]:
        for name in ("judged", "judged_by", "judged_unit", "judged_better"):
            del row[name]
    (tmp_path / "older.json").write_text(json.dumps(document))
    with open_store(tmp_path / "other.sqlite") as other:
        other.import_from(tmp_path / "older.json")
        assert other.rows("last") == store.rows("last")


def test_taking_a_run_in_twice_is_reported_and_changes_nothing(store: Store, tmp_path: Path) -> None:
    keep_whole(store, a_run())
    store.export_to("last", tmp_path / "run.json")
    with pytest.raises(InvalidRequest, match="already"):
        store.import_from(tmp_path / "run.json")
    assert len(store.runs()) == 1


def test_an_exported_run_is_a_saved_run_to_those_who_read_these(store: Store, tmp_path: Path) -> None:
    run = a_run_with_everything()
    keep_whole(store, run)
    store.export_to("last", tmp_path / "run.json")
    assert msgspec.json.encode(load_run(tmp_path / "run.json")) == msgspec.json.encode(run)


def test_a_saved_run_is_taken_in_without_samples_and_only_once(store: Store, tmp_path: Path) -> None:
    run = a_run_with_everything()
    save_run(tmp_path / "race.json", run)
    run_id = store.import_from(tmp_path / "race.json")
    assert run_id.startswith("20260102-030405-")
    assert msgspec.json.encode(store.load(run_id)) == msgspec.json.encode(run)
    assert store.samples(run_id, 0, "torch") == {}
    assert len(store.runs()[0].placed) == 3
    with pytest.raises(InvalidRequest, match="already"):
        store.import_from(tmp_path / "race.json")


@pytest.mark.parametrize(
    ("processes", "ended_early", "state"),
    [
        (16, "", "finished"),
        (14, "", "interrupted"),
        (15, "", "interrupted"),
        (14, "another block would not have fitted into 12 s", "finished"),
    ],
)
def test_a_saved_run_is_finished_only_when_its_race_ended_by_itself(
    store: Store, tmp_path: Path, processes: int, ended_early: str, state: str
) -> None:
    run = a_run()
    run.processes, run.ended_early = run.processes[:processes], ended_early
    save_run(tmp_path / "race.json", run)
    assert store.state(store.import_from(tmp_path / "race.json")) == state


def test_a_saved_run_whose_search_for_the_smallest_memory_was_broken_off_is_not_finished(
    store: Store, tmp_path: Path
) -> None:
    run = a_run()
    run.plan = msgspec.structs.replace(run.plan, min_memory=True)
    found = SmallestMemory("address space", 2**30, 2**25, 9)
    run.processes[-1].smallest_memory = found
    save_run(tmp_path / "race.json", run)
    run_id = store.import_from(tmp_path / "race.json")
    assert store.state(run_id) == "interrupted"
    store.remove(run_id)
    run.processes[-2].smallest_memory = found
    save_run(tmp_path / "race.json", run)
    assert store.state(store.import_from(tmp_path / "race.json")) == "finished"


def changed(given: RunFile, kind: str) -> RunFile:
    if kind == "id":
        given.id = "../../elsewhere"
    elif kind == "rows":
        given.rows = [msgspec.structs.replace(row, run="other") for row in given.rows]
    elif kind == "twice":
        given.processes.append(given.processes[0])
    elif kind == "length":
        given.samples[0].ns = given.samples[0].ns[:-1]
    elif kind == "stranger":
        given.samples[0].block = 99
    elif kind == "format":
        given.format = 99
    return given


@pytest.mark.slow_but("length", "rows")
@pytest.mark.parametrize("kind", ["id", "rows", "twice", "length", "stranger", "format"])
def test_a_file_that_does_not_hold_together_is_refused_whole(store: Store, tmp_path: Path, kind: str) -> None:
    keep_whole(store, a_run())
    file = tmp_path / "run.json"
    store.export_to("last", file)
    store.remove("last")
    file.write_bytes(msgspec.json.encode(changed(load_run_file(file), kind)))
    with pytest.raises(InvalidRequest, match=re.escape(str(file))):
        store.import_from(file)
    assert store.runs() == []


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[1]", b'{"plan": null}'])
def test_a_file_that_is_no_run_is_refused(store: Store, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "no.json").write_bytes(content)
    with pytest.raises(InvalidRequest, match="is not a run"):
        store.import_from(tmp_path / "no.json")

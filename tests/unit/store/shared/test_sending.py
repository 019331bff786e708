"""A run is in the shared store once, however often and from wherever it is sent, and no run takes another's place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import invoke, output, refusal
from fairlap.errors import FairlapError
from fairlap.race.run import Run
from fairlap.store.file_store import Store
from fairlap.store.opening import store_path
from fairlap.store.recording import resume_recording
from fairlap.store.runs import run_ids
from fairlap.store.shared import waiting
from fairlap.store.shared.address import address_of
from fairlap.store.shared.copying import copy_run
from fairlap.store.shared.sender import open_with
from fairlap.store.shared.sending import pull, push
from fairlap.store.shared.shared_store import SharedStore, open_shared_store
from fairlap.store.store import open_store
from postgresql_server import Server
from runs_for_rows import a_run
from runs_in_store import keep_whole, recording_of, samples_of

pytestmark = pytest.mark.sanitized


@pytest.fixture
def local(shared_url: str) -> Iterator[Store]:
    with open_store(store_path()) as store:
        yield store


@pytest.fixture
def shared(shared_url: str) -> Iterator[SharedStore]:
    with open_shared_store(shared_url) as store:
        yield store


def outcomes(source: Store, shared: SharedStore, *runs: str) -> list[str]:
    return [each.outcome for each in push(source, shared, runs)]


def interrupted(store: Store, run: Run, processes: int) -> str:
    recording = recording_of(store, run, processes)
    recording.end({}, interrupted=True)
    return recording.run


def resumed(store: Store, run_id: str, run: Run, whole: int, until: int | None) -> None:
    """From the blocks that are whole, in which ``whole`` processes ran."""
    recording = resume_recording(store, run_id, run.processes[:whole])
    for process in run.processes[whole:until]:
        recording.keep(process, samples_of(process))
    recording.end({}, interrupted=until is not None)


def test_sent_again_nothing_is_there_twice(local: Store, shared: SharedStore) -> None:
    runs = [keep_whole(local, a_run()) for _ in range(3)]
    assert outcomes(local, shared, *runs) == ["sent"] * 3
    assert outcomes(local, shared, *runs) == ["unchanged"] * 3
    assert json.loads(output("runs", "push", "--all", "--json"))["runs"][0]["outcome"] == "unchanged"
    assert sorted(each.run for each in shared.runs()) == sorted(runs)


@pytest.mark.slow
def test_many_that_send_the_same_runs_at_once_send_each_once(local: Store, shared_url: str) -> None:
    runs = [keep_whole(local, a_run(blocks=2)) for _ in range(4)]

    def machine(_: int) -> list[str]:
        with open_store(store_path()) as own, open_shared_store(shared_url) as shared:
            return outcomes(own, shared, *runs)

    with ThreadPoolExecutor(8) as machines:
        found = [each for machine_found in machines.map(machine, range(8)) for each in machine_found]
    assert found.count("sent") == 4
    assert set(found) == {"sent", "unchanged"}
    with open_shared_store(shared_url) as shared:
        assert [len(shared.load(run).processes) for run in runs] == [4] * 4


def test_what_is_cut_off_in_the_middle_of_a_run_leaves_nothing_of_it_and_is_sent_again(
    local: Store, shared: SharedStore, postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [keep_whole(local, a_run(blocks=2)) for _ in range(3)]
    cut: list[int] = []
    real = shared._connection.executemany

    def cutting(statement: str, parameters: Any, /) -> None:
        if statement.startswith("INSERT INTO samples") and len(cut) < 1:
            cut.append(shared._connection._raw.info.backend_pid)
            postgresql.execute(f"SELECT pg_terminate_backend({cut[0]})")
        real(statement, parameters)

    monkeypatch.setattr(shared._connection, "executemany", cutting)
    assert outcomes(local, shared, *runs) == ["sent"] * 3
    assert cut
    assert all(shared.load(run).processes == local.load(run).processes for run in runs)


@pytest.mark.slow
def test_another_run_that_has_the_id_already_keeps_it_and_the_new_one_gets_another(
    local: Store, shared: SharedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = keep_whole(local, a_run())
    outcomes(local, shared, first)
    with open_store(tmp_path / "other.sqlite") as other:
        with monkeypatch.context() as same:
            same.setattr(run_ids, "id_after", lambda *_: first)
            different = a_run(listed="onnxruntime,openvino")
            assert keep_whole(other, different) == first
            other.replace_rows(first, [msgspec.structs.replace(row, fairlap="marked") for row in other.rows(first)])
        waiting.add(other.path, first, "target")
        [pulled] = pull(other, shared, [first])
        assert (pulled.outcome, pulled.code) == ("failed", "E_REQUEST")
        [carried] = push(other, shared, [first])
        assert (carried.outcome, carried.was) == ("sent", first)
        assert [each.run for each in other.runs()] == [carried.run]
        assert {row.run for row in other.rows(carried.run)} == {carried.run}
        assert waiting.waiting(other.path, "target") == []
        assert outcomes(other, shared, carried.run) == ["unchanged"]
    assert shared.load(first).plan == a_run().plan
    assert shared.load(carried.run).plan == different.plan
    assert {(row.run, row.fairlap) for row in shared.rows(carried.run)} == {(carried.run, "marked")}


@pytest.mark.slow
def test_a_run_that_was_resumed_takes_the_place_of_its_beginning_and_never_the_other_way_round(
    local: Store, shared: SharedStore, tmp_path: Path
) -> None:
    run = a_run(blocks=4)
    run_id = interrupted(local, run, 3)
    assert outcomes(local, shared, run_id) == ["sent"]
    with open_store(tmp_path / "other.sqlite") as other:
        assert [each.outcome for each in pull(other, shared, [run_id])] == ["received"]
        resumed(other, run_id, run, whole=2, until=None)
        assert outcomes(other, shared, run_id) == ["updated"]
    assert (shared.state(run_id), len(shared.load(run_id).processes)) == ("finished", 8)
    assert outcomes(local, shared, run_id) == ["older"]
    assert shared.state(run_id) == "finished"
    assert [each.outcome for each in pull(local, shared, [run_id])] == ["updated"]
    assert local.state(run_id) == "finished"
    assert local.load(run_id) == shared.load(run_id)


@pytest.mark.slow
def test_what_another_machine_stored_in_the_meantime_is_not_replaced(
    local: Store, shared: SharedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(blocks=4)
    run_id = interrupted(local, run, 2)
    outcomes(local, shared, run_id)
    with open_store(tmp_path / "other.sqlite") as other:
        list(pull(other, shared, [run_id]))
        resumed(other, run_id, run, whole=2, until=4)
        resumed(local, run_id, run, whole=2, until=None)

        def overtaken(*arguments: Any) -> None:
            monkeypatch.setattr("fairlap.store.shared.sending.copy_run", copy_run)
            assert outcomes(local, shared, run_id) == ["updated"]
            copy_run(*arguments)

        monkeypatch.setattr("fairlap.store.shared.sending.copy_run", overtaken)
        assert outcomes(other, shared, run_id) == ["older"]
    assert len(shared.load(run_id).processes) == 8


@pytest.mark.slow
def test_a_run_that_two_machines_finished_differently_is_kept_twice(
    local: Store, shared: SharedStore, tmp_path: Path
) -> None:
    run = a_run(blocks=4)
    run_id = interrupted(local, run, 2)
    outcomes(local, shared, run_id)
    with open_store(tmp_path / "other.sqlite") as other:
        list(pull(other, shared, [run_id]))
        resumed(other, run_id, run, whole=2, until=None)
        outcomes(other, shared, run_id)
    for process in run.processes[2:]:
        process.version = "another"
    resumed(local, run_id, run, whole=2, until=None)
    [carried] = push(local, shared, [run_id])
    assert (carried.outcome, carried.was) == ("sent", run_id)
    assert len(shared.runs()) == 2


def test_a_run_that_is_still_recorded_is_not_sent_and_a_killed_one_is(local: Store, shared: SharedStore) -> None:
    recording = recording_of(local, a_run(), processes=3)
    [carried] = push(local, shared, [recording.run])
    assert (carried.outcome, carried.code) == ("failed", "E_REQUEST")
    recording._lock.close()  # as when its process is killed
    assert outcomes(local, shared, recording.run) == ["sent"]
    assert (shared.state(recording.run), len(shared.load(recording.run).processes)) == ("killed", 3)
    assert shared.rows(recording.run) == local.rows(recording.run)


@pytest.mark.slow
def test_one_run_that_cannot_be_read_does_not_hold_up_the_others(local: Store, shared: SharedStore) -> None:
    runs = [keep_whole(local, a_run()) for _ in range(3)]
    local._db.execute("UPDATE samples SET crc32 = 0 WHERE process IN (SELECT processes.number FROM processes"
                      " JOIN runs ON runs.number = run WHERE id = ?)", (runs[1],))  # fmt: skip
    found = list(push(local, shared, runs))
    assert [each.outcome for each in found] == ["sent", "failed", "sent"]
    assert found[1].code == "E_STORE_DAMAGED"
    assert found[1].message.startswith(str(local.path))
    assert len(shared.runs()) == 2


def test_a_run_of_many_samples_is_sent_in_parts_and_is_whole(
    local: Store, shared: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlap.store.shared.copying._BYTES_AT_ONCE", 900)
    run = a_run(blocks=3)
    run_id = keep_whole(local, run)
    outcomes(local, shared, run_id)
    for process in run.processes:
        found = shared.samples(run_id, process.block, process.contestant)
        assert {name: values.tobytes() for name, values in found.items()} == {
            name: values.tobytes() for name, values in samples_of(process).items()
        }


@pytest.mark.slow
def test_without_arguments_what_waits_for_this_database_is_sent(local: Store, shared_url: str) -> None:
    run_id, other, gone = (keep_whole(local, a_run()) for _ in range(3))
    target = address_of(shared_url).target
    for run in (run_id, gone):
        waiting.add(local.path, run, target)
    waiting.add(local.path, other, "elsewhere/runs")
    local.remove(gone)
    result = invoke("runs", "push")
    assert f"sent {run_id}" in result.output
    assert waiting.waiting(local.path, target) == []
    assert waiting.waiting(local.path, "elsewhere/runs") == [other]
    assert output("runs", "push") == "no run waits\n"
    assert refusal("runs", "push", "--all", run_id).code == "E_REQUEST"


def test_a_run_to_be_resumed_is_received_when_only_the_shared_store_has_it(local: Store, shared: SharedStore) -> None:
    run_id = interrupted(local, a_run(blocks=4), 2)
    outcomes(local, shared, run_id)
    local.remove(run_id)
    with open_with(run_id[:-1]) as store:
        assert store.state(run_id) == "interrupted"
    assert local.id_of(run_id) == run_id
    with pytest.raises(FairlapError) as raised:
        open_with("20010101")
    assert raised.value.code == "E_NO_RUN"


def test_pulling_brings_every_run_once(local: Store, shared: SharedStore, tmp_path: Path) -> None:
    with open_store(tmp_path / "other.sqlite") as other:
        runs = [keep_whole(other, a_run()) for _ in range(3)]
        outcomes(other, shared, *runs)
        assert output("runs", "pull", runs[0]).startswith(f"received {runs[0]}")
        assert output("runs", "pull").splitlines()[-1] in ("2 received, 1 unchanged", "1 unchanged, 2 received")
        assert output("runs", "pull") == "3 unchanged\n"
        assert all(msgspec.json.encode(local.load(run)) == msgspec.json.encode(other.load(run)) for run in runs)

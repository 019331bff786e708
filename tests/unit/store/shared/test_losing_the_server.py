"""The server goes away, at the worst moments, and comes back or not: nothing that was measured is lost, or twice."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import fairlap, invoke, output
from fairlap.cli.races.recorder import Recorder
from fairlap.errors import FairlapError
from fairlap.race.progress import Silence
from fairlap.race.run import Run
from fairlap.results.results import results_of
from fairlap.store.opening import store_path
from fairlap.store.shared import connection
from fairlap.store.shared.address import Address, address_of
from fairlap.store.shared.errors import StoreIsUnreachable
from fairlap.store.shared.sending import push
from fairlap.store.shared.shared_store import SharedStore, open_shared_store
from fairlap.store.store import open_store
from postgresql_server import Server
from runs_for_rows import a_run
from runs_in_store import keep_whole, samples_of
from trust.shared_store import measure

pytestmark = pytest.mark.sanitized


@pytest.fixture
def restarted(postgresql: Server, shared_url: str) -> Iterator[Server]:
    """However a test leaves it, the server answers the next one."""
    yield postgresql
    with suppress(Exception):
        postgresql.resume()
    if not postgresql.answers():
        postgresql.start()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlap.store.shared.shared_store.PAUSES_S", (0.05, 0.05))


class Notes(Silence):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def say(self, text: str) -> None:
        self.notes.append(text)


def raced(run: Run, server: Server, *, killed_after: int | None) -> tuple[str, tuple[str, str] | None, list[str]]:
    """Do what a race does with its store, while the server is killed after some of its processes."""
    notes = Notes()
    recorder = Recorder(run, None, notes)
    for number, process in enumerate(run.processes):
        if number == killed_after:
            server.kill()
        recorder.record(process, samples_of(process))
    run_id = recorder.end(results_of(run, recorder.run_id), interrupted=False)
    assert recorder.loss is None
    return *recorder.send(run_id), notes.notes


def test_a_race_goes_on_without_its_server_and_its_run_is_sent_after_the_next_one(
    restarted: Server, hurried: None
) -> None:
    run = a_run()
    first, error, notes = raced(run, restarted, killed_after=3)
    assert error is not None
    assert error[1] == "W_UNSENT"
    assert len(error[0].splitlines()) == 1
    assert first in error[0]
    assert notes == []
    second, error, notes = raced(a_run(), restarted, killed_after=None)
    assert error is not None
    assert len(notes) == 1  # at the beginning of the race already
    restarted.start()
    assert "2 runs of this machine" in invoke("runs").output
    third, error, notes = raced(a_run(), restarted, killed_after=None)
    assert error is None
    assert {note.split(",")[0] for note in notes} == {first, second}
    with open_store(reading=True) as shared, open_store(store_path()) as local:
        assert {each.run for each in shared.runs()} == {first, second, third}
        assert shared.load(first).processes == local.load(first).processes == run.processes
    assert output("runs", "push") == "no run waits\n"


@pytest.mark.slow
def test_the_command_says_so_with_its_exit_status(restarted: Server, shared_url: str) -> None:
    race = ("compare", "callable", "--on", "python:call=os.getpid,python:call=os.getppid", "--conditions", "as-found",
            "--blocks", "1", "--seconds", "0.02", "--quiet")  # fmt: skip
    restarted.kill()
    done = fairlap(*race)
    assert done.returncode == 1
    assert done.stderr.count("[W_UNSENT]") == 1, done.stderr
    assert "python:call=os.getpid" in done.stdout
    assert str(address_of(shared_url).parameters["password"]) not in done.stderr + done.stdout
    restarted.start()
    [run_id] = re.findall(r"(\S+) is stored on this machine", done.stderr)
    assert f"sent {run_id}" in output("runs", "push")
    assert "2 of 2 processes" in output("show", run_id)


@pytest.mark.slow
def test_a_server_that_restarts_in_the_middle_is_waited_for(restarted: Server, shared_url: str) -> None:
    with open_store(store_path()) as local, open_shared_store(shared_url) as shared:
        runs = [keep_whole(local, a_run(blocks=2)) for _ in range(6)]
        sending = push(local, shared, runs)
        found = [next(sending)]
        restarted.kill()
        back = threading.Timer(0.3, restarted.start)
        back.start()
        found += sending
        back.join()
        assert [each.outcome for each in found] == ["sent"] * 6
        assert sorted(each.run for each in shared.runs()) == sorted(runs)


def test_an_answer_that_was_lost_after_all_was_stored_is_no_reason_to_store_it_twice(
    restarted: Server, shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(store_path()) as local, open_shared_store(shared_url) as shared:
        run_id = keep_whole(local, a_run())
        real = connection.Connection.execute
        begun: list[str] = []
        lost: list[str] = []

        def losing(self: connection.Connection, statement: str, *rest: object) -> object:
            answer = real(self, statement, *rest)  # type: ignore[arg-type]
            if statement.startswith("BEGIN"):
                begun.append(statement)
            if statement == "COMMIT" and begun[-1] == "BEGIN " and not lost:
                lost.append(statement)
                self._raw.close()
                raise StoreIsUnreachable("the connection was lost")
            return answer

        monkeypatch.setattr(connection.Connection, "execute", losing)
        [carried] = push(local, shared, [run_id])
        assert lost
        assert carried.outcome == "unchanged"
        assert [each.run for each in shared.runs()] == [run_id]


def test_a_server_that_hangs_is_given_up_in_time(
    restarted: Server, shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(store_path()) as local, open_shared_store(shared_url) as shared:
        run_id = keep_whole(local, a_run())
        restarted.pause()
        began_s = time.monotonic()
        with monkeypatch.context() as hurried:
            hurried.setattr(connection, "ANSWER_WITHIN_S", 0.5)
            with pytest.raises(FairlapError) as raised:
                shared.runs()
        assert raised.value.code == "E_STORE_UNREACHABLE"
        assert time.monotonic() - began_s < 60  # it hangs for ever
        restarted.resume()
        shared.reconnect()
        assert [each.outcome for each in push(local, shared, [run_id])] == ["sent"]


@pytest.mark.slow
def test_a_server_that_never_answers_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("FAIRLAP_STORE", f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/d?connect_timeout=2")
        began_s = time.monotonic()
        result = invoke("runs")
        took_s = time.monotonic() - began_s
    assert isinstance(result.exception, FairlapError)
    assert result.exception.code == "E_STORE_UNREACHABLE"
    assert 1.5 < took_s < 60


@pytest.mark.slow
def test_with_the_server_gone_for_good_every_run_is_reported_and_only_the_first_is_tried(
    restarted: Server, shared_url: str, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[object] = []
    connect = connection._connect

    def counted(address: Address) -> connection.Connection:
        attempts.append(address)
        return connect(address)

    with open_store(store_path()) as local, open_shared_store(shared_url) as shared:
        runs = [keep_whole(local, a_run(blocks=2)) for _ in range(30)]
        sending = push(local, shared, runs)
        next(sending)
        restarted.kill()
        monkeypatch.setattr(connection, "_connect", counted)
        found = list(sending)
    assert 0 < len(attempts) < 29
    assert {(each.outcome, each.code) for each in found} == {("failed", "E_STORE_UNREACHABLE")}
    assert len(found) == 29


@pytest.mark.slow
def test_machines_that_write_at_once_while_the_server_is_killed_lose_nothing_and_store_nothing_twice(
    restarted: Server, shared_url: str, tmp_path: Path
) -> None:
    measured = measure(restarted, shared_url, tmp_path, processes=2, threads=4, runs=3, kills=1)
    assert (measured.recorded, measured.stored, measured.whole) == (24, 24, 24)
    assert measured.kills == 1


def test_a_connection_that_was_closed_is_an_unreachable_server(shared_url: str) -> None:
    with SharedStore(address_of(shared_url)) as shared:
        shared._connection._raw.close()
        with pytest.raises(StoreIsUnreachable):
            shared.runs()

"""A shared store answers every question as a file does, keeps what it was sent, and refuses in one line."""

from __future__ import annotations

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from asgi_client import request
from command_line import invoke, output, refusal
from fairlap.errors import FairlapError
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.run import Run
from fairlap.results.flat_row import columns
from fairlap.store import schema
from fairlap.store.file_store import Store
from fairlap.store.opening import store_path
from fairlap.store.runs.notes import change_tags, write_note
from fairlap.store.search import Wanted
from fairlap.store.shared.address import address_of
from fairlap.store.shared.content import TABLES
from fairlap.store.shared.sending import pull, push
from fairlap.store.shared.shared_store import _NEWEST, SharedStore, open_shared_store
from fairlap.store.store import open_store
from postgresql_server import OWNER, PASSWORD, Server
from runs_for_rows import a_run
from runs_in_store import a_run_with_everything, keep_whole, recording_of, samples_of
from runs_with_compilations import with_compilations

pytestmark = pytest.mark.sanitized


def sent(run: Run) -> str:
    with open_store(store_path()) as local:
        run_id = keep_whole(local, run)
        with open_store() as shared:
            assert isinstance(shared, SharedStore)
            assert [each.outcome for each in push(local, shared, [run_id])] == ["sent"]
    return run_id


def test_a_run_comes_back_as_it_was_with_every_sample_and_row(shared_url: str, tmp_path: Path) -> None:
    run = with_compilations(a_run_with_everything())
    run.ended_early = "zero \0 and ü"
    with open_store(store_path()) as local:
        recording = recording_of(local, run)
        for found in run.compilations:
            recording.keep_compilation(found)
        for number in (1, 0):
            run.profiles.append(ProfileResult(number, "torch", run.plan.works[0].id))
            recording.keep_profile(run.profiles[-1])
        recording.end(run.wall_s, run.ended_early)
        rows = local.rows("last")
        with open_shared_store(shared_url) as shared:
            list(push(local, shared, [recording.run]))
    run.ended_early = "zero \ufffd and ü"
    with open_store(tmp_path / "other.sqlite") as other, open_store(reading=True) as shared:
        assert isinstance(shared, SharedStore)
        list(pull(other, shared, [recording.run]))
        for store in (shared, other):
            assert msgspec.json.encode(store.load("last")) == msgspec.json.encode(run)
            assert store.rows("last") == rows
            for process in run.processes:
                found_samples = store.samples("last", process.block, process.contestant)
                assert list(found_samples) == list(samples_of(process))
                for name, values in samples_of(process).items():
                    assert found_samples[name].tobytes() == values.tobytes()


@pytest.mark.slow
def test_lists_and_ids_are_those_of_the_same_runs_in_a_file(shared_url: str) -> None:
    runs = [a_run(), a_run(mode="train"), a_run(listed="torch,onnxruntime"), a_run_with_everything()]
    for number, run in enumerate(runs):
        run.began_at = f"2026-01-0{number + 1}T03:04:05"
        sent(run)
    with open_store(store_path()) as local, open_store(reading=True) as shared:
        for wanted in (
            Wanted(),
            Wanted("mlp"),
            Wanted(on="onnxruntime"),
            Wanted("mlp", "jax", "2026-01-02"),
            Wanted("x"),
            Wanted(before="20260103-030405-222"),
        ):
            for limit in (None, 1, 20):
                assert shared.runs(wanted, limit) == local.runs(wanted, limit)
        for name in ("last", "2026", "20260102", "2026010", "z", ""):
            answers = []
            for store in (local, shared):
                try:
                    answers.append(store.id_of(name))
                except FairlapError as error:
                    answers.append(f"{error.code} {error}")
            assert answers[0] == answers[1]
        assert {shared.state(each.run) for each in shared.runs()} == {"finished"}


@pytest.mark.slow
def test_it_is_browsed_as_a_file_is(shared_url: str) -> None:
    pytest.importorskip("fastapi", reason="needs the extra serve; `make test` installs it and runs this")
    from fairlap.browse.application import application

    first, second = sent(a_run()), sent(a_run())
    older, newer = sorted([first, second])
    page = request(application(), "/api/runs?limit=1").json
    assert ([run["run"] for run in page["runs"]], page["next"]) == ([newer], newer)
    assert [run["run"] for run in request(application(), f"/api/runs?before={newer}").json["runs"]] == [older]
    assert request(application(), f"/api/runs/{older}").json["id"] == older
    assert request(application(), f"/api/across?run={older}&run={newer}").status == 200
    assert request(application(), f"/runs/{older}/run.json").json["samples"]


def test_every_table_of_a_run_is_carried(shared_url: str, postgresql: Server) -> None:
    sent(a_run())
    with sqlite3.connect(store_path()) as db:
        local = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    of_sweeps = {"sweeps", "sweep_runs", "sweep_blocks"}  # these stay in the store in which their blocks are marked
    assert local == {*TABLES, "runs", "processes", "samples", "rows", "foreign_points", *of_sweeps}
    database = address_of(shared_url).parameters["dbname"]
    found = postgresql.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'fairlap'", str(database))
    assert {name for (name,) in found} == {*local, "store"}


@pytest.mark.slow
def test_commands_on_stored_runs_read_it(shared_url: str, tmp_path: Path) -> None:
    later = a_run()
    later.began_at = "2026-01-03T03:04:05+00:00"
    one, other = sent(a_run()), sent(later)
    file = tmp_path / "run.json"
    assert f"{one}  " in output("runs", "--model", "mlp")
    assert "torch" in output("show", one)
    exported = ("runs", "export", one, file)
    for command in (("diff", one, other), ("gate", one, other), ("export", one, "-o", tmp_path / "r.csv"), exported):
        assert invoke(*command).exit_code == 0, command
    assert output("runs", "remove", one) == f"removed {one}\n"
    assert refusal("show", one).code == "E_NO_RUN"
    assert output("runs", "import", file) == f"stored {one}\n"
    assert refusal("runs", "import", file).code == "E_REQUEST"
    assert output("runs", "push", one) == "1 unchanged\n"  # the file has all of it


@pytest.mark.slow
def test_machines_that_come_at_once_make_one_set_of_tables(shared_url: str, postgresql: Server) -> None:
    with ThreadPoolExecutor(16) as machines:
        opened = list(machines.map(lambda _: open_shared_store(shared_url), range(16)))
    for store in opened:
        store.close()
    assert postgresql.execute("SELECT schema FROM fairlap.store", _database(shared_url)) == [(_NEWEST,)]


def test_an_older_one_is_brought_up_to_date_and_a_newer_one_refused(
    shared_url: str, postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr("fairlap.store.shared.shared_store._NEWEST", schema.FIRST_SCHEMA + 1)
        open_shared_store(shared_url).close()
    database = _database(shared_url)
    gone = columns()[-1].name
    postgresql.execute(f'ALTER TABLE fairlap.rows DROP COLUMN "{gone}" CASCADE', database)
    postgresql.execute(f"SET search_path TO fairlap; CREATE VIEW {schema.RESULTS}", database)
    run_id = sent(a_run())
    assert postgresql.execute("SELECT schema FROM fairlap.store", database) == [(_NEWEST,)]
    assert postgresql.execute(f'SELECT "{gone}" FROM fairlap.results', database)
    assert refusal("show", f"{run_id}x").code == "E_NO_RUN"
    postgresql.execute(f"UPDATE fairlap.store SET schema = {_NEWEST + 1}", database)
    for command in (("runs",), ("show", run_id), ("runs", "push", "--all")):
        assert refusal(*command).code == "E_STORE_NEWER"


def test_a_schema_of_something_else_is_left_alone(shared_url: str, postgresql: Server) -> None:
    postgresql.execute("CREATE SCHEMA fairlap", _database(shared_url))
    postgresql.execute("CREATE TABLE fairlap.results (number INTEGER)", _database(shared_url))
    assert refusal("runs").code == "E_REQUEST"
    with open_store(store_path()) as local:
        keep_whole(local, a_run())
    assert refusal("runs", "push", "--all").code == "E_REQUEST"


def test_a_user_who_may_only_read_reads_and_is_refused_in_one_line_when_writing(
    shared_url: str, postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = _database(shared_url)
    postgresql.execute(f"CREATE USER reader_{database} PASSWORD 'read'")
    as_reader = postgresql.url(database, f"reader_{database}", "read")
    monkeypatch.setenv("FAIRLAP_STORE", as_reader)
    with open_store(store_path()) as local:
        run_id = keep_whole(local, a_run())
    assert refusal("runs", "push", run_id).code == "E_STORE_READ_ONLY"  # it may not create the tables
    monkeypatch.setenv("FAIRLAP_STORE", shared_url)
    assert invoke("runs", "push", run_id).exit_code == 0
    monkeypatch.setenv("FAIRLAP_STORE", as_reader)
    assert refusal("runs").code == "E_STORE_READ_ONLY"
    postgresql.execute(f"GRANT USAGE ON SCHEMA fairlap TO reader_{database}", database)
    postgresql.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA fairlap TO reader_{database}", database)
    assert run_id in output("runs")
    assert "torch" in output("show", run_id)
    assert output("runs", "pull") == "1 unchanged\n"
    assert refusal("runs", "remove", run_id).code == "E_STORE_READ_ONLY"
    with open_store(store_path()) as local:
        keep_whole(local, a_run())
    refused = invoke("runs", "push", "--all")
    assert refused.exit_code == 1
    assert refused.output.count("[E_STORE_READ_ONLY]") == 1


@pytest.mark.parametrize(
    ("user", "password", "database", "parameters", "code"),
    [
        (OWNER, "verysecret", "postgres", {}, "E_STORE_LOGIN"),
        (OWNER, "", "postgres", {}, "E_STORE_LOGIN"),
        ("nobody", "verysecret", "postgres", {}, "E_STORE_LOGIN"),
        (OWNER, PASSWORD, "no_such", {}, "E_STORE_LOGIN"),
        (OWNER, PASSWORD, "postgres", {"sslmode": "require"}, "E_STORE_LOGIN"),
        (OWNER, PASSWORD, "postgres", {"sslmode": "verify-full", "sslrootcert": "/no/such.pem"}, "E_STORE_LOGIN"),
        (OWNER, PASSWORD, "postgres", {"hostaddr": "127.0.0.1", "port": "1"}, "E_STORE_UNREACHABLE"),
        (OWNER, PASSWORD, "postgres", {"host": "no-such-host.invalid"}, "E_STORE_UNREACHABLE"),
    ],
)
def test_a_login_that_fails_is_one_line_without_the_password(
    user: str, password: str, database: str, parameters: dict[str, str], code: str,
    postgresql: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.setattr("fairlap.store.shared.shared_store.PAUSES_S", (0.01,))
    monkeypatch.setenv("FAIRLAP_STORE", postgresql.url(database, user, password, **parameters))
    error = refusal("runs")
    assert error.code == code
    assert len(str(error).splitlines()) == 1
    assert not password or password not in str(error)
    assert "%40" not in str(error)


def test_samples_that_have_changed_are_damage(shared_url: str, postgresql: Server) -> None:
    run_id = sent(a_run())
    postgresql.execute("UPDATE fairlap.samples SET ns = '\\x0000000000000000'", _database(shared_url))
    store: Store
    with open_store(reading=True) as store:
        first = store.load(run_id).processes[0]
        with pytest.raises(FairlapError) as raised:
            store.samples(run_id, first.block, first.contestant)
    assert raised.value.code == "E_STORE_DAMAGED"


@pytest.mark.slow
def test_the_statements_of_the_documentation_set_up_what_they_say(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[4] / "docs/how-to/share-a-store.md").read_text()
    creating, granting, selecting = re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("FAIRLAP_LOCAL_STORE", str(tmp_path / "local.sqlite"))
    for statement in creating.strip().split("\n"):
        postgresql.execute(statement)
    owner = {"user": "fairlap_owner", "password": "choose one"}
    monkeypatch.setenv("FAIRLAP_STORE", postgresql.url("fairlap", **owner))
    first = sent(a_run())
    for statement in granting.strip().split("\n"):
        postgresql.execute(statement, "fairlap", **owner)
    for role in ("writers", "readers"):
        postgresql.execute(f"CREATE ROLE one_of_{role} LOGIN PASSWORD 'p' IN ROLE fairlap_{role}")
    monkeypatch.setenv("FAIRLAP_STORE", postgresql.url("fairlap", "one_of_writers", "p"))
    second = sent(a_run())
    assert output("runs", "remove", first) == f"removed {first}\n"
    monkeypatch.setenv("FAIRLAP_STORE", postgresql.url("fairlap", "one_of_readers", "p"))
    assert second in output("runs")
    assert invoke("show", second).exit_code == 0
    assert refusal("runs", "remove", second).code == "E_STORE_READ_ONLY"
    assert len(postgresql.execute(selecting, "fairlap", user="one_of_readers", password="p")) == 2


def _database(url: str) -> str:
    return str(address_of(url).parameters["dbname"])


@pytest.mark.slow
def test_notes_and_tags_are_carried_and_changed_in_the_shared_store(shared_url: str) -> None:
    with open_store(store_path()) as local, open_store() as shared:
        assert isinstance(shared, SharedStore)
        run_id = keep_whole(local, a_run())
        with local.database(writing=True) as db:
            change_tags(db, run_id, ["nightly"], [])
            write_note(db, run_id, "zero \0 and ü")
        list(push(local, shared, [run_id]))
        [found] = shared.runs(Wanted(tag="nightly"))
        assert (found.note, found.tags) == ("zero \ufffd and ü", ("nightly",))
        with shared.database(writing=True) as db:
            change_tags(db, run_id, ["50 %"], ["nightly"])
            write_note(db, run_id, "zero \0")
        assert shared.runs(Wanted(tag="nightly")) == []
        assert [each.note for each in shared.runs(Wanted(tag="50 %"))] == ["zero \ufffd"]
        assert [each.outcome for each in push(local, shared, [run_id])] == ["unchanged"]

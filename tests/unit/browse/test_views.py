"""What a browser shows is what the commands show, a page at a time; what is wrong is one line."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from asgi_client import Answer, request
from command_line import output

pytest.importorskip("fastapi", reason="needs the extra serve; `make test` installs it and runs this")

from fairlap.browse.application import application
from fairlap.browse.views import VIEWS
from fairlap.race.run import Run
from fairlap.store import opening
from fairlap.store.file_store import Store
from fairlap.store.runs.run_ids import id_of
from fairlap.store.search import Wanted
from fairlap.store.store import open_store
from fairlap.store.tables import insert_run, keep_rows
from runs_for_rows import a_run
from runs_in_store import a_run_with_everything, keep_whole
from stored_histories import FIRST, daily_run, stored

RUNS = 7


def get(url: str, **more: str) -> Answer:
    return request(application(), url, **more)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Store runs of six days of which there are rows only, and a newer one with processes and samples."""
    path = tmp_path_factory.mktemp("store") / "runs.sqlite"
    ids = stored(path, [daily_run(day) for day in range(RUNS - 1)])
    run = a_run_with_everything()
    run.began_at = (FIRST + timedelta(days=30)).isoformat()
    with open_store(path) as store:
        return path, [*ids, keep_whole(store, run)]


@pytest.fixture(autouse=True)
def ids(runs: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("FAIRLAP_STORE", str(runs[0]))
    return runs[1]


_QUERIES = {"history": "?model=mlp", "across": "?run={run}"}


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_answers_get_and_head(path: str, ids: list[str]) -> None:
    if path in ("/", "/history", "/across") or path.startswith("/runs/{run}"):
        pytest.importorskip("vl_convert", reason="needs the extra report; `make test` installs it and runs this")
    query = next((text for name, text in _QUERIES.items() if path.endswith(name)), "")
    url = (path + query).replace("{run}", ids[-1])
    answer = get(url)
    assert answer.status == 200
    assert len(answer.body) > 100
    assert request(application(), url, method="HEAD").headers == answer.headers


def test_documents_are_those_of_the_commands(ids: list[str]) -> None:
    run = ids[-1]
    listed = get("/api/runs?limit=3").json
    assert listed["runs"] == msgspec.json.decode(output("runs", "--json", "--limit", 3))["runs"]
    assert get(f"/api/runs/{run}").json == msgspec.json.decode(output("show", run, "--json"))
    assert get("/api/history?model=mlp&on=jax").json == msgspec.json.decode(
        output("history", "mlp", "--on", "jax", "--json")
    )
    assert get(f"/api/across?run={run}&run={ids[0]}&require=latency_p99%3C20ms").json == msgspec.json.decode(
        output("across", run, ids[0], "--require", "latency_p99<20ms", "--json")
    )
    assert get(f"/runs/{run}/rows.csv").text == output("export", run, "--format", "csv")
    assert get(f"/runs/{run}/rows.json").json == msgspec.json.decode(output("export", run, "--format", "json"))


def test_the_run_file_holds_the_samples_and_is_saved_under_its_id(ids: list[str], tmp_path: Path) -> None:
    answer = get("/runs/last/run.json")
    assert answer.headers["content-disposition"] == f'attachment; filename="{ids[-1]}.run.json"'
    (tmp_path / "run.json").write_bytes(answer.body)
    with open_store() as there, open_store(tmp_path / "other.sqlite") as here:
        assert here.import_from(tmp_path / "run.json") == ids[-1]
        assert here.load(ids[-1]) == there.load(ids[-1])
        one = here.load(ids[-1]).processes[0]
        assert here.samples(ids[-1], one.block, one.contestant).keys() == {"wall_ns", "host_issue_ns"}


def test_the_report_may_run_its_own_scripts_and_no_others() -> None:
    pytest.importorskip("vl_convert", reason="needs the extra report; `make test` installs it and runs this")
    answer = get("/runs/last")
    policy = answer.headers["content-security-policy"].removesuffix("; frame-ancestors 'none'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy.partition("script-src")[2].partition(";")[0]
    assert policy.replace("'", "&#x27;") in answer.text  # the page's own


def test_pages_follow_each_other_by_id_without_a_gap(ids: list[str]) -> None:
    found, before = [], ""
    while True:
        page = get(f"/api/runs?limit=3{before and '&before='}{before}").json
        found += [run["run"] for run in page["runs"]]
        before = page["next"]
        if before is None:
            break
    assert found == sorted(ids, reverse=True)
    html = get(f"/?limit=3&before={ids[3]}&on=jax").text
    assert [run in html for run in ids] == [True, True, True, False, False, False, False]
    assert f'"/?on=jax&amp;limit=3&amp;before={ids[2]}"' in get(f"/?limit=3&before={ids[5]}&on=jax").text


def test_the_list_has_state_winner_and_ratio_and_offers_the_models(ids: list[str]) -> None:
    page = get("/").text
    assert '<span class="state finished">✓ finished' in page
    assert re.search(r"1 \S+, 2 \S+ \d+\.\d\d×", page)
    assert '<option value="mlp">' in page


def test_the_history_of_one_run_has_no_empty_chart(ids: list[str], tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="needs the extra report; `make test` installs it and runs this")
    assert "<picture>" in get("/history?model=mlp&on=torch").text
    stored(tmp_path / "one.sqlite", [daily_run(0)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_STORE", str(tmp_path / "one.sqlite"))
        page = get("/history?model=mlp").text
    assert "<picture>" not in page
    assert "takes two runs" in page


def test_filters_are_those_of_the_command(ids: list[str]) -> None:
    def found(query: str) -> list[str]:
        return [run["run"] for run in get(f"/api/runs?{query}").json["runs"]]

    assert found("on=jax:fast") == [ids[-1]]
    assert found("since=2026-01-05") == sorted(ids[4:], reverse=True)
    assert found("model=mlp&on=torch&since=2026-01-06") == [ids[-1], ids[-2]]
    assert found("model=none") == []


@pytest.mark.slow
def test_a_page_of_a_large_store_reads_no_more_than_one_of_a_small_one(tmp_path: Path) -> None:
    """Counted in steps of SQLite's machine, along the whole way down the list."""
    run, rows = daily_run(0)

    def steps(count: int) -> list[int]:
        path = tmp_path / f"{count}.sqlite"
        with open_store(path) as store, store.database(writing=True) as db:
            for number in range(count):
                began_at = (FIRST + timedelta(hours=number)).isoformat()
                run_id = id_of(began_at, str(number).encode())
                insert_run(db, run_id, "finished", msgspec.structs.replace(run, began_at=began_at))
                keep_rows(db, [msgspec.structs.replace(row, run=run_id) for row in rows])
        return [_steps_of(path, before) for before in ("", "20260103-000000-222")]

    small, large = steps(40), steps(400)
    for few, many in zip(small, large, strict=True):
        assert 0 < many <= 1.05 * few + 200


def _steps_of(path: Path, before: str) -> int:
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    with open_store(path, reading=True) as store, store.database() as db:
        assert isinstance(db, sqlite3.Connection)
        db.set_progress_handler(step, 1)
        found = store.runs(Wanted(before=before), 21)
        assert len(found) == 21
    return count


@pytest.mark.parametrize(
    ("url", "status", "code"),
    [
        ("/runs/20990101-000000-222", 404, "E_NO_RUN"),
        ("/runs/2026", 404, "E_NO_RUN"),
        ("/runs/%3Cscript%3E/rows.csv", 404, "E_NO_RUN"),
        ("/runs/..%2f..%2fetc%2fpasswd", 404, "E_REQUEST"),
        ("/api/runs/%00", 404, "E_NO_RUN"),
        ("/history?model=none", 404, "E_NO_RUN"),
        ("/?on=" + ",".join(["a"] * 3000), 400, "E_REQUEST"),
        ("/history", 400, "E_REQUEST"),
        ("/history?model=mlp&margin=2", 400, "E_REQUEST"),
        ("/?since=yesterday", 400, "E_REQUEST"),
        ("/?limit=0", 400, "E_REQUEST"),
        ("/?limit=201", 400, "E_REQUEST"),
        ("/?limit=%C2%B2", 400, "E_REQUEST"),
        ("/?before=x", 400, "E_REQUEST"),
        ("/?model=a&model=b", 400, "E_REQUEST"),
        ("/?modle=mlp", 400, "E_REQUEST"),
        ("/across", 400, "E_REQUEST"),
        ("/across?run=last&run=last", 400, "E_ACROSS"),
        ("/across?run=last&require=nonsense", 400, "E_REQUIRE"),
        ("/nothing", 404, "E_REQUEST"),
        ("/runs/", 404, "E_REQUEST"),
    ],
)
def test_what_is_wrong_is_one_line_with_a_code(url: str, status: int, code: str) -> None:
    answer = get(url)
    assert (answer.status, answer.text.count("\n")) == (status, 1)
    assert answer.text.endswith(f"[{code}]\n") or answer.json["error"]["code"] == code
    assert answer.headers["content-type"].startswith(("text/plain", "application/json"))


def test_a_file_of_this_machine_cannot_be_named(tmp_path: Path) -> None:
    from fairlap.store.runs.run_file import save_run

    save_run(tmp_path / "race.json", a_run())
    for url in (f"/across?run={tmp_path}/race.json", f"/api/across?run={tmp_path}/race.json"):
        assert get(url).status == 404


def test_a_store_that_is_not_there_yet_is_an_empty_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "none.sqlite"))
    assert get("/").status == 200
    assert get("/api/runs").json == {"schema": "fairlap.runs/1", "runs": [], "next": None}
    assert get("/runs/last").status == 404
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_store_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    answer = get("/")
    assert (answer.status, answer.text.count("\n")) == (503, 1)
    assert "E_STORE_DAMAGED" in answer.text


def test_pages_are_served_while_another_process_writes(ids: list[str]) -> None:
    with open_store() as store, store.database(writing=True) as db:
        db.execute("DELETE FROM runs WHERE id = ?", (ids[0],))
        assert len(get("/api/runs").json["runs"]) == RUNS
        db.execute("ROLLBACK")
        db.execute("BEGIN")


def test_a_store_that_is_locked_as_a_whole_is_one_line(
    runs: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_WAIT_FOR_OTHERS_S", 0.01)
    with closing(sqlite3.connect(runs[0], isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        answer = get("/")
        other.execute("ROLLBACK")
    assert (answer.status, answer.text.count("\n")) == (503, 1)
    assert "E_STORE_BUSY" in answer.text


def test_a_run_that_is_removed_meanwhile_is_still_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        run = keep_whole(store, a_run())
    with open_store(path, reading=True) as reader:
        with reader.one_moment():
            assert reader.id_of(run) == run
            with open_store(path) as other:
                other.remove(run)
            assert len(reader.load(run).processes) == len(a_run().processes)
        assert reader.runs() == []


def test_a_run_that_is_removed_while_its_page_is_made_is_still_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    with open_store() as store:
        run = keep_whole(store, a_run())
    load = Store.load

    def removed_before(store: Store, run: str) -> Run:
        monkeypatch.undo()
        with open_store(tmp_path / "runs.sqlite") as other:
            other.remove(run)
        return load(store, run)

    monkeypatch.setattr(Store, "load", removed_before)
    assert get(f"/api/runs/{run}").json["id"] == run


def test_reading_changes_nothing(runs: tuple[Path, list[str]], ids: Sequence[str]) -> None:
    with closing(sqlite3.connect(runs[0])) as db:
        [[before]] = db.execute("PRAGMA data_version")
        for url in ("/", "/api/runs/last", "/history?model=mlp", f"/across?run={ids[0]}", "/runs/last/run.json"):
            assert get(url).status in (200, 501)
        [[after]] = db.execute("PRAGMA data_version")
    assert before == after

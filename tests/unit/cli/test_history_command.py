"""``fairlap history`` and ``fairlap stale`` on stores with known histories."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from command_line import invoke, refusal
from fairlap import quantity_text
from fairlap.history.model_history import history_of
from fairlap.history.stale import changed_since
from fairlap.machine.facts import machine_facts
from fairlap.race.run import Run
from fairlap.render.document import Document
from fairlap.render.encoders import encoded
from fairlap.render.encoders.text import text_of
from fairlap.render.trends.document import HistoryDocument, document_of
from fairlap.request.names import ContestantName
from fairlap.request.work import Work
from fairlap.store.opening import store_path
from fairlap.store.store import open_store
from msgspec.structs import replace
from runs_for_rows import a_run
from runs_in_store import keep_whole
from stored_histories import NEW, OLD, daily_run, stored, under_load

DAYS = 30


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Store a release that is 5 % slower from day 15, and a machine that is 8 % slower from day 22."""
    path = tmp_path_factory.mktemp("store") / "runs.sqlite"

    def torch(day: int) -> float:
        return 1.05 if day >= 15 else 1.0

    def machine(day: int) -> float:
        return 1.08 if day >= 22 else 1.0

    return path, stored(path, [daily_run(day, torch=torch, machine=machine, upgraded_on=15) for day in range(DAYS)])


@pytest.fixture(autouse=True)
def path(history: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(history[0]))
    return history[0]


def test_the_document_has_every_series_and_change(history: tuple[Path, list[str]]) -> None:
    done = invoke("history", "mlp", "--on", "torch", "--json")
    assert done.exit_code == 0
    [trend] = json.loads(done.stdout)["trends"]
    assert [series["contestant"] for series in trend["series"]] == ["jax", "onnxruntime", "torch"]
    assert {len(series["points"]) for series in trend["series"]} == {DAYS}
    release, machine = trend["changes"]
    assert (release["cause"], release["run"], release["versions"]) == ("contestant", history[1][15], [OLD, NEW])
    assert release["low"] < 1.05 < release["high"]
    assert (machine["cause"], machine["run"]) == ("machine", history[1][22])
    assert machine["low"] < 1.08 < machine["high"]


def test_since_leaves_earlier_runs_out() -> None:
    done = invoke("history", "mlp", "--on", "torch", "--since", "2026-01-19", "--json")
    [trend] = json.loads(done.stdout)["trends"]
    assert len(trend["runs"]) == DAYS - 18
    assert [change["cause"] for change in trend["changes"]] == ["machine"]


def test_the_document_names_both_changes_and_their_causes(history: tuple[Path, list[str]]) -> None:
    [section] = shown("torch").sections
    contestants, changes = section.tables
    assert [row[:3] for row in contestants.rows] == [["torch", f"{OLD} -> {NEW}", str(DAYS)]]
    release, machine = changes.rows
    assert (release[0], release[1], release[3]) == ("2026-01-16", f"torch {OLD} -> {NEW}", history[1][15])
    assert (machine[0], machine[1], machine[3]) == ("2026-01-23", "the machine", history[1][22])
    assert not section.notes
    assert section.picture is not None
    assert section.picture.draw is not None
    [everyone] = shown("").sections
    assert [row[0] for row in everyone.tables[0].rows] == ["jax", "onnxruntime", "torch"]


def shown(on: str) -> Document:
    with open_store(reading=True) as store:
        return document_of(history_of(store, "mlp", on=on, margin=0.01))


def test_a_history_of_load_shows_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.sqlite"
    days = [daily_run(day, torch=lambda day: 1.25 if day >= 12 else 1.0, upgraded_on=12) for day in range(24)]
    stored(path, [under_load(day) for day in days])
    monkeypatch.setenv("FAIRLAP_STORE", str(path))
    found = shown("torch")
    [contestants, changes] = found.sections[0].tables
    [first, last] = [float(cell.partition("/s")[0].replace(",", "")) for cell in contestants.rows[0][-2:]]
    assert last / first == pytest.approx(0.8, rel=0.05)
    ratio = changes.rows[0][changes.heads.index("times the rate")]
    assert float(ratio.partition(" [")[0]) == pytest.approx(0.8, rel=0.01)
    assert "times as long" not in text_of(found)
    assert "largest rate" in encoded(found, "svg").decode()
    assert isinstance(found.data, HistoryDocument)
    [recorded] = found.data.trends[0].changes
    assert recorded.ratio == pytest.approx(1.25, rel=0.01)  # of times, as its quantity says
    assert {row[found.records.names.index("quantity")] for row in found.records.rows} == {"largest rate"}


def test_the_records_have_every_run_and_where_changes_begin(history: tuple[Path, list[str]]) -> None:
    records = shown("torch").records
    rows = [dict(zip(records.names, row, strict=True)) for row in records.rows]
    assert len(rows) == 3 * DAYS
    [release] = [row for row in rows if row["change"] == "contestant"]
    assert (release["contestant"], release["run"]) == ("torch", history[1][15])
    assert release["ratio"].low < 1.05 < release["ratio"].high
    assert {row["change"] for row in rows if row["ratio"] is None} == {""}
    assert {row["unit"] for row in rows} == {"ns"}
    assert all(row["figure"].low <= row["figure"].value <= row["figure"].high for row in rows)


@pytest.mark.slow
def test_pictures_and_pages_are_drawn(tmp_path: Path, history: tuple[Path, list[str]]) -> None:
    files = {suffix: tmp_path / f"trend.{suffix}" for suffix in ("html", "svg", "png")}
    outputs = [part for file in files.values() for part in ("-o", file)]
    assert invoke("history", "mlp", "--on", "torch", *outputs).exit_code == 0
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(files["svg"]).getroot().tag.endswith("svg")
    page = files["html"].read_text()
    assert history[1][15] in page
    pictures = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", page)
    assert len(pictures) == 2  # for the light and the dark theme
    for picture in pictures:
        ElementTree.fromstring(base64.b64decode(picture))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("mlq",), "E_NO_RUN"),
        (("mlp", "--on", "tensorflow"), "E_NO_RUN"),
        (("mlp", "--on", ""), "E_REQUEST"),
        (("mlp", "--since", "yesterday"), "E_REQUEST"),
        (("mlp", "--margin", "-1%"), "E_REQUEST"),
        (("mlp", "-o", "trend.parquet"), "E_OUTPUT_FORMAT"),
        (("mlp", "-o", "/nowhere/trend.csv"), "E_FILE"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_a_code(arguments: tuple[str, ...], code: str) -> None:
    found = invoke("history", *arguments).exception
    if isinstance(found, SystemExit):  # click has shown it
        assert found.code == 2
    else:
        assert getattr(found, "code", "") == code


@pytest.mark.usefixtures("own_store")
def test_a_model_without_its_sizes_is_refused_with_those_that_were_raced() -> None:
    run_of_this_machine()
    with sqlite3.connect(store_path()) as db:
        db.execute("UPDATE works SET model = 'mlp[batch=32]'")
    error = refusal("history", "mlp")
    assert (error.code, "mlp[batch=32]" in str(error)) == ("E_NO_RUN", True)


def run_of_this_machine(**facts: str) -> str:
    run = a_run(listed="./worker,./other")
    run.machine = {**machine_facts(), **facts}
    with open_store() as store:
        kept: str = keep_whole(store, run)
    return kept


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))


@pytest.mark.usefixtures("own_store")
def test_a_result_of_another_kernel_is_stale_until_it_is_measured_again() -> None:
    old = run_of_this_machine(kernel="5.0", microcode="0x1")
    done = invoke("stale", "--json")
    assert done.exit_code == 1
    [found] = json.loads(done.stdout)["stale"]
    assert (found["run"], found["renew"]) == (old, f"fairlap rerun {old}")
    assert {"kernel"} <= {each["name"] for each in found["changed"]} <= {"kernel", "microcode"}
    with open_store() as store:
        run = store.load(old)
        run.machine, run.began_at = machine_facts(), "2026-02-01T00:00:00+00:00"
        keep_whole(store, run)
    done = invoke("stale", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"schema": "fairlap.stale/1", "stale": [], "current": 1, "elsewhere": 0}


@pytest.mark.usefixtures("own_store")
def test_results_of_other_hardware_are_counted_only() -> None:
    run_of_this_machine(**{"cpu model": "another", "kernel": "5.0"})
    found = json.loads(invoke("stale", "--json").stdout)
    assert (found["stale"], found["current"], found["elsewhere"]) == ([], 0, 1)


@pytest.mark.usefixtures("own_store")
def test_a_store_without_results_is_refused() -> None:
    assert getattr(invoke("stale").exception, "code", "") == "E_NO_RUN"
    run_of_this_machine()
    assert getattr(invoke("stale", "--model", "other").exception, "code", "") == "E_NO_RUN"


def test_a_framework_and_a_driver_make_a_result_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(listed="torch,jax")
    run.machine = {"driver": "550", "kernel": "6.1"}
    for process in run.processes:
        process.version = "2.0"
    monkeypatch.setattr("fairlap.history.stale._version_now", lambda framework, _: {"torch": "2.1"}.get(framework, ""))
    assert [str(each) for each in changed_since(run, {"driver": "560", "kernel": "6.1"})] == ["torch 2.0 -> 2.1"]
    run.plan = replace(run.plan, device="cuda:0")
    names = {each.name for each in changed_since(run, {"driver": "560", "kernel": "6.1"})}
    assert names == {"driver", "torch"}


def test_a_contestant_that_did_not_start_has_no_result_to_renew(monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(listed="torch,jax")
    for process in run.processes:
        process.version = "2.0" if process.contestant == "torch" else ""
    monkeypatch.setattr("fairlap.history.stale._version_now", lambda _framework, _device: "2.0")
    assert changed_since(run, run.machine) == ()


@pytest.mark.usefixtures("own_store")
def test_few_runs_show_no_change_and_do_not_claim_that_there_is_none(tmp_path: Path) -> None:
    stored(tmp_path / "runs.sqlite", [daily_run(0)])
    [section] = shown("torch").sections
    assert section.picture is not None
    assert section.picture.draw is None
    [note] = section.notes
    assert "1 of 8" in note
    assert "no change" not in note


def test_where_nothing_changed_it_says_which_step_would_have_been_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(tmp_path / "s", [daily_run(day) for day in range(12)])
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "s"))
    [trend] = json.loads(invoke("history", "mlp", "--on", "torch", "--json").stdout)["trends"]
    [step] = trend["smallest_steps"]
    [note] = shown("torch").sections[0].notes
    assert f"{step['contestant']} {quantity_text.share(step['ratio'] - 1)}" in note


def commands_run(names: str) -> None:
    run = a_run(listed=names)
    contestants = tuple(ContestantName(each, "command", options=(("run", "true"),)) for each in names.split(","))
    plan = msgspec.structs.replace(run.plan, works=(Work("callable", 1),), contestants=contestants)
    for process in run.processes:
        process.work_id = plan.works[0].id
    with open_store() as store:
        keep_whole(store, Run(plan, run.processes, run.machine, run.wall_s, run.began_at))


@pytest.mark.slow
def test_races_of_commands_have_a_history_under_the_title_that_the_list_shows(own_store: None) -> None:
    for _ in range(2):
        commands_run("old,new,other")
    for arguments, shown in (((), {"old", "new", "other"}), (("--on", "old,new"), {"old", "new"})):
        done = invoke("history", "commands", *arguments)
        assert done.exit_code == 0
        assert {name for name in ("old", "new", "other") if re.search(rf"\b{name}\b", done.stdout)} == shown
    assert len(json.loads(invoke("runs", "--model", "commands", "--on", "old,new", "--json").stdout)["runs"]) == 2
    for refused in (("commands", "--on", "old,missing"), ("callables",)):
        assert getattr(invoke("history", *refused).exception, "code", "") == "E_NO_RUN"

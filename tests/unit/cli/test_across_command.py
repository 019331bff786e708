"""``fairlap across``: runs of several machines side by side, without a verdict between them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import invoke, output, refusal
from fairlap.history.across.lines import entries_of
from fairlap.render.across.document import document_of
from fairlap.render.encoders import SUFFIXES
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.prices import price_given
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.store.runs.run_file import save_run
from fairlap.store.store import open_store
from fairlap.store.stored_rows import RowsOfRun, rows_named
from runs_for_rows import a_run, crashed
from runs_in_store import keep_whole
from runs_side_by_side import a_quicker_run, a_slower_run, saved

PRICES = ("--price", "0.5/h", "--price", "quick.json=1.2/h")


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, slow=a_slower_run, quick=a_quicker_run)
    return tmp_path


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output("across", "slow.json", "quick.json", *arguments, "--json"))
    return found


def line(found: dict[str, Any], contestant: str, run: str) -> dict[str, Any]:
    [own] = [each for each in found["lines"] if (each["contestant"], each["run"]) == (contestant, run)]
    return dict(own)


@pytest.mark.usefixtures("two")
def test_every_contestant_of_every_run_has_a_line_with_what_follows_from_price_energy_and_grid() -> None:
    found = document(*PRICES, "--carbon", "400g/kWh")
    assert len(found["lines"]) == 4
    torch = line(found, "torch", "quick")
    # 2 ms for 4 items at 1.2 an hour; 0.8 J for 100 calls of 4 items.
    assert torch["cost_per_1000_items"]["value"] == pytest.approx(1.2 * 250 * 2e-3 / 3600, rel=0.01)
    assert torch["items_per_unit_of_money"]["value"] == pytest.approx(1000 / torch["cost_per_1000_items"]["value"])
    assert torch["energy_per_item_j"]["value"] == pytest.approx(0.002)
    assert torch["items_per_s_per_w"]["value"] == pytest.approx(500)
    assert torch["carbon_per_1000_items_g"]["value"] == pytest.approx(2 * 400 / 3.6e6)
    assert (torch["price_per_hour"], torch["currency"]) == (1.2, "USD")
    for name in ("items_per_unit_of_money", "items_per_s_per_w", "carbon_per_1000_items_g"):
        assert torch[name]["low"] <= torch[name]["value"] <= torch[name]["high"]


@pytest.mark.usefixtures("two")
def test_what_is_absent_is_null_with_its_reason_and_never_0() -> None:
    found = document()
    for each in found["lines"]:
        for name, value in each.items():
            assert (value is None) == (name in each["absent"])
            assert value != {"value": 0}
    slow = line(found, "torch", "slow")
    assert slow["absent"]["carbon_per_1000_items_g"] == "no carbon of the grid was given"
    assert slow["absent"]["cost_per_1000_items"] == "no price was given"
    assert slow["absent"]["items_per_s_per_w"] == "no source of power was read"
    assert line(document("--carbon", "1g/kWh"), "torch", "slow")["carbon_per_1000_items_g"] is None


@pytest.mark.usefixtures("two")
def test_what_differs_is_listed_with_the_value_of_each_run_and_what_agrees_is_not() -> None:
    differing = {(each["about"], each["what"]): each["values"] for each in document(*PRICES)["differences"]}
    assert differing["machine", "cpu model"] == {"slow": "Imaginary 9000", "quick": "Imaginary 9100"}
    assert differing["version", "torch"] == {"slow": "1.2.3", "quick": "1.3.0"}
    assert differing["price", "price of an hour"] == {"slow": "0.5 USD", "quick": "1.2 USD"}
    assert ("machine", "kernel") not in differing
    assert not json.loads(output("across", "slow.json", "--json"))["differences"]


@pytest.mark.usefixtures("two")
def test_a_line_is_dominated_by_those_whose_intervals_of_time_and_cost_are_below_its_own() -> None:
    found = document(*PRICES)
    assert line(found, "jax:fast", "quick")["dominated_by"] == []
    assert line(found, "jax:fast", "slow")["dominated_by"] == []  # slower, and cheaper
    assert line(found, "torch", "slow")["dominated_by"] == ["jax:fast in slow", "jax:fast in quick"]
    euros = document("--price", "0.5/h", "--price", "quick.json=0.0001EUR/h")
    assert line(euros, "torch", "slow")["dominated_by"] == ["jax:fast in slow"]  # never by a cost in another currency


def test_stored_rows_have_the_price_of_their_race_and_a_given_price_is_that_of_a_race(two: Path) -> None:
    run, price = a_run(), price_given("3.6EUR/h")
    with open_store() as store:
        run_id = keep_whole(store, run)
        store.replace_rows(run_id, results_of(run, run_id, price=price).rows)
    [stored] = [
        each for each in json.loads(output("across", "last", "--json"))["lines"] if each["contestant"] == "torch"
    ]
    assert stored["price_per_hour"] == pytest.approx(3.6)
    other = json.loads(output("across", run_id, "--price", "7.2EUR/h", "--json"))["lines"]
    [twice] = [each for each in other if each["contestant"] == "torch"]
    rows = results_of(run, run_id, price=price_given("7.2EUR/h")).rows
    [row] = [each for each in rows if each.contestant == "torch"]
    assert twice["cost_per_1000_items"] == msgspec.to_builtins(row.cost_per_1000_items)


def test_a_contestant_that_crashed_has_a_line_with_its_outcome(two: Path) -> None:
    run = a_run()
    for process in run.processes:
        if process.contestant == "torch":
            crashed(process)
    save_run(two / "lost.json", run)
    [own] = [
        each for each in json.loads(output("across", "lost.json", "--json"))["lines"] if each["contestant"] == "torch"
    ]
    assert own["outcome"] == "crash"
    assert own["time_ns"] is None
    assert "SIGSEGV" in own["absent"]["time_ns"]


@pytest.mark.slow
def test_every_suffix_is_written(two: Path) -> None:
    pytest.importorskip("altair")
    files = [f"out{suffix}" for suffix in SUFFIXES]
    text = output("across", "slow.json", "quick.json", *PRICES, *(part for file in files for part in ("-o", file)))
    for file in files[:-1]:
        assert "jax" in (two / file).read_text()
    assert (two / "out.png").read_bytes().startswith(b"\x89PNG")
    assert "jax:fast" in text
    lines = json.loads((two / "out.json").read_text())["lines"]
    rows = list(csv.DictReader(io.StringIO((two / "out.csv").read_text())))
    assert [float(row["cost_per_1000_items_low"]) for row in rows] == [
        each["cost_per_1000_items"]["low"] for each in lines
    ]


def test_the_document_has_a_table_of_each_work_its_notes_and_what_differs(two: Path) -> None:
    runs = [rows_named(f"{name}.json") for name in ("slow", "quick")]
    price = {"slow.json": price_given("0.5/h"), "quick.json": price_given("1.2/h")}
    [work, flips, chart, decision, differing] = document_of(runs, price).sections
    assert not flips.notes
    [lines] = work.tables
    assert {tuple(row[:3]) for row in lines.rows} == {
        ("torch 1.2.3", "slow", "Imaginary 9000"),
        ("jax:fast 1.2.3", "slow", "Imaginary 9000"),
        ("torch 1.3.0", "quick", "Imaginary 9100"),
        ("jax:fast 1.3.0", "quick", "Imaginary 9100"),
    }
    assert lines.heads[3] == "median time of a call"
    assert {"p99", "items/s", "cost/1000 items", "items per money", "energy/item"} <= {*lines.heads}
    assert "CO2/1000 items" not in lines.heads  # of no line
    [beaten] = [note for note in work.notes if note.startswith("torch in slow: ")]
    assert beaten.endswith("jax:fast in slow, jax:fast in quick")
    [no_carbon] = [note for note in work.notes if "CO2" in note]
    assert no_carbon.endswith("no carbon of the grid was given")
    assert chart.picture is not None
    assert not decision.notes
    [facts] = differing.tables
    assert facts.heads == ["about", "what", "in slow", "in quick"]
    assert ["machine", "cpu model", "Imaginary 9000", "Imaginary 9100"] in facts.rows
    [alone] = document_of(runs[:1]).sections[-1:]
    assert (len(alone.tables), alone.notes) == (0, ["no known difference"])


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["slow.json", "slow.json"], "E_ACROSS"),
        (["nothing"], "E_NO_RUN"),
        (["nothing.json"], "E_REQUEST"),
        (["slow.json", "--carbon", "400"], "E_REQUEST"),
        (["slow.json", "--carbon", "other=400g/kWh"], "E_REQUEST"),
        (["slow.json", "--price", "1/h", "--price", "2/h"], "E_REQUEST"),
        (["slow.json", "--price", "cheap"], "E_PRICE"),
        (["slow.json", "-o", "a.parquet"], "E_OUTPUT_FORMAT"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_code(arguments: list[str], code: str) -> None:
    assert refusal("across", *arguments).code == code


@pytest.mark.parametrize("suffixes", [("html", "svg"), ("svg", "html")])
def test_without_a_price_the_page_is_written_and_one_line_says_why_the_chart_is_not(
    two: Path, suffixes: tuple[str, ...]
) -> None:
    files = [two / f"found.{suffix}" for suffix in suffixes]
    found = invoke("across", "slow.json", "quick.json", *(word for file in files for word in ("-o", file)))
    assert found.exit_code == 1
    assert found.stderr.count("[E_ACROSS]") == 1
    assert "found.svg" in found.stderr
    assert "torch" in found.stdout
    assert {file.name: file.exists() for file in files} == {"found.html": True, "found.svg": False}


def test_a_run_of_many_processes_is_read_without_them(two: Path) -> None:
    """They are what takes time to read: spoilt, they do not matter."""
    with open_store() as store:
        run_id = keep_whole(store, a_run())
        store._db.execute("UPDATE processes SET process = 'rubbish'")
    assert run_id in output("across", run_id)


def reached(row: Row, **figures: Estimate) -> Row:
    absent = {name: why for name, why in row.absent.items() if name not in figures}
    return msgspec.structs.replace(row, absent=absent, **figures)


def test_training_to_a_score_has_what_it_costs_to_reach_it() -> None:
    run = a_run()
    time = Estimate(7.2, 3.6, 36.0)
    rows = [
        msgspec.structs.replace(
            reached(row, time_to_score_s=time, judged=time, energy_to_score_j=Estimate(9.0)),
            judged_by="time to a score of 90 %",
            judged_unit="s",
        )
        for row in results_of(run, "a").rows
    ]
    entries = entries_of([RowsOfRun("a", "a", tuple(rows), run.plan, {})], {"a": price_given("10 EUR/h")}, {})
    costs = {each.line.contestant: each.line.cost_to_score for each in entries}
    assert set(costs) == {"torch", "jax:fast"}
    assert {msgspec.structs.astuple(cost) for cost in costs.values() if cost} == {(0.02, 0.01, 0.1)}
    assert {each.line.currency for each in entries} == {"EUR"}
    for each in entries:
        assert each.line.judged_cost is not None
        assert each.line.judged_cost.value == pytest.approx(0.02)
    [table] = (
        document_of([RowsOfRun("a", "a", tuple(rows), run.plan, {})], {"a": price_given("10 EUR/h")}).sections[0].tables
    )
    assert {"time to a score of 90 %", "cost to score", "energy to score"} <= {*table.heads}
    [no_cost] = {each.line.absent["cost_to_score"] for each in entries_of(
        [RowsOfRun("a", "a", tuple(rows), run.plan, {})], {}, {})}  # fmt: skip
    assert no_cost

"""Changes of any quantity of the row: planted in stores, and found with their size, their run and their command."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke, refusal
from fairlap.models.task_metrics import Score
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.quantities.row_quantities import quantity_columns, row_quantity
from fairlap.results.row import Row
from msgspec.structs import replace
from published_schemas import checked
from runs_for_rows import MACHINE
from stored_histories import Day, daily_run, stored

DAYS, AT = 24, 12
MIB = 2**20
Values = Callable[[int, float], object]
"""Of a day, and of how many times the usual figure it is."""


def exact(usual: float) -> Values:
    return lambda _day, times: Estimate(usual * times, usual * times * 0.999, usual * times * 1.001)


def noisy(usual: float) -> Values:
    def value(day: int, times: float) -> Estimate:
        found = usual * times * random.Random(f"{day} {times}").lognormvariate(0, 0.002)
        return Estimate(found, 0.99 * found, 1.01 * found)

    return value


def with_value(row: Row, name: str, value: object) -> Row:
    absent = {key: why for key, why in row.absent.items() if key != name}
    return replace(row, **{name: value, "absent": absent})


def day_with(column: str, values: Values, day: int, times: float, *, from_day: int = AT) -> Day:
    """Torch has so many times the figure from a day on; the others have it as it was."""
    facts = {**MACHINE, "git revision": f"{day:02x}" * 20, "git branch": "main"}
    run, rows = daily_run(day, facts=facts)
    found = []
    for row in rows:
        grown = times if row.framework == "torch" and day >= from_day else 1.0
        found.append(with_value(row, column, values(day, grown)))
    return run, found


def trends(quantity: str, *options: object) -> list[dict[str, Any]]:
    done = invoke("history", "mlp", "--quantity", quantity, *options, "--json")
    assert done.exit_code == 0, done.output
    document = checked(done.stdout)
    assert document["quantity"] == quantity
    return document["trends"]  # type: ignore[no-any-return]


CASES: list[tuple[str, str, Values, float, str]] = [
    ("memory_peak", "peak_memory_bytes", exact(100 * MIB), 1.2, "memory_peak"),
    ("peak_memory_bytes", "peak_memory_bytes", exact(100 * MIB), 0.9, "memory_peak"),
    ("cpu_time", "cpu_time_ns", noisy(2e6), 1.3, "cpu_time"),
    ("compile_time", "compile_cold_s", noisy(3.0), 1.4, "compile_time"),
    ("time_to_first_inference", "time_to_first_inference_s", noisy(2.0), 1.1, "time_to_first"),
    ("energy_per_item", "energy_per_item_j", noisy(0.02), 1.25, ""),
    ("score", "accuracy", exact(0.75), 0.9, ""),
    ("top1", "scores", lambda _day, times: {"top1:logits": Score(0.8 * times, 0.7, 0.9, "Wilson", 100)}, 0.9, ""),
    ("size", "largest_batch", lambda _day, times: int(1000 * times), 0.5, ""),
    ("min_memory", "min_memory_bytes", lambda _day, times: 50.0 * MIB * times, 1.5, ""),
]


@pytest.mark.slow_but("cpu_time", "score", "memory_peak")
@pytest.mark.parametrize(("quantity", "column", "values", "times", "bisected"), CASES)
def test_a_planted_step_is_found_with_its_size_its_commits_and_the_command_that_finds_it(
    quantity: str, column: str, values: Values, times: float, bisected: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ids = stored(tmp_path / "s", [day_with(column, values, day, times) for day in range(DAYS)])
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "s"))
    files = ("-o", tmp_path / "h.html", "-o", tmp_path / "h.csv") if quantity == "memory_peak" else ()
    [trend] = trends(quantity, "--on", "torch", *files)
    [change] = trend["changes"]
    assert (change["run"], change["run_before"], change["cause"]) == (ids[AT], ids[AT - 1], "contestant")
    assert change["ratio"] == pytest.approx(times, rel=0.01)
    assert change["low"] <= change["ratio"] <= change["high"]
    good, bad = (f"{day:02x}" * 5 for day in (AT - 1, AT))
    option = f"--quantity {bisected} " if bisected else ""
    command = f"fairlap bisect {option}--good {good} --bad {bad}" if bisected else ""
    assert trend["bisect"] == [command]
    if not files:
        return
    page = (tmp_path / "h.html").read_text()
    assert f"{good}..{bad}" in page
    assert command in page
    assert (tmp_path / "h.csv").read_text().count("\n") == 1 + 3 * DAYS


def test_rates_are_compared_as_times_and_shown_as_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path / "s", [day_with("throughput_per_s", noisy(500.0), day, 0.8) for day in range(DAYS)])
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "s"))
    [trend] = trends("throughput", "--on", "torch")
    assert trend["changes"][0]["ratio"] == pytest.approx(1.25, rel=0.01)
    shown = invoke("history", "mlp", "--on", "torch", "--quantity", "throughput").stdout
    assert "times the rate" in shown
    assert "0.8" in shown


def test_the_time_of_the_same_runs_did_not_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path / "s", [day_with("peak_memory_bytes", exact(MIB), day, 2.0) for day in range(DAYS)])
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "s"))
    [trend] = checked(invoke("history", "mlp", "--json").stdout)["trends"]
    assert (trend["changes"], trend["bisect"]) == ([], [])


@pytest.mark.slow_but("value")
@pytest.mark.parametrize("values", [exact(100 * MIB), noisy(100 * MIB)])
def test_from_the_smallest_step_on_a_step_is_found_and_below_it_none(
    values: Values, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = 14

    def found_with(times: float) -> tuple[list[Any], list[Any]]:
        path = tmp_path / f"{times}"
        stored(path, [day_with("peak_memory_bytes", values, day, times, from_day=few - 3) for day in range(few)])
        monkeypatch.setenv("FAIRLAP_STORE", str(path))
        [trend] = trends("memory_peak", "--on", "torch", "--margin", "0.01%")
        return trend["changes"], trend["smallest_steps"]

    changes, [step] = found_with(1.0)
    assert changes == []
    assert 1 < step["ratio"] < 1.05
    beyond = step["ratio"] - 1
    assert [len(found_with(1 + factor * beyond)[0]) for factor in (0.5, 2)] == [0, 1]


@pytest.mark.slow
def test_where_nothing_grew_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of memory that differs by a few pages from run to run, and of memory that never does."""

    def pages(day: int, _times: float) -> Estimate:
        held = 100 * MIB + 4096 * random.Random(day).randrange(40)
        return Estimate(held, held, held)

    for number, values in enumerate((pages, exact(MIB))):
        path = tmp_path / f"{number}"
        stored(path, [day_with("peak_memory_bytes", values, day, 1.0) for day in range(60)])
        monkeypatch.setenv("FAIRLAP_STORE", str(path))
        [trend] = trends("memory_peak", "--margin", "0.01%")
        assert trend["changes"] == []


def test_what_no_row_holds_is_refused_and_what_these_rows_hold_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(tmp_path / "s", [daily_run(day) for day in range(3)])
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "s"))
    for given, named in (("memory_peek", "memory_peak"), ("energy_per_item", "latency_p50_ns"), ("threads", "")):
        error = refusal("history", "mlp", "--quantity", given)
        assert (error.code, named in str(error)) == ("E_QUANTITY", True)


def test_every_measured_column_has_a_history_and_what_was_asked_has_none() -> None:
    names = {each.name for each in quantity_columns()}
    assert {"latency_p99_ns", "peak_memory_bytes", "energy_per_item_j", "compile_warm_s", "accuracy"} <= names
    assert not {"batch", "threads", "ratio", "judged", "cost_per_1000_items", "blocks_kept"} & names
    for name in names:
        assert row_quantity(name).column == name


def test_a_page_of_the_store_takes_a_quantity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlap.browse.views import Asked, _history_document

    stored(tmp_path / "s", [day_with("peak_memory_bytes", exact(MIB), day, 2.0) for day in range(DAYS)])
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "s"))
    shown = _history_document(Asked("", {"model": ["mlp"], "quantity": ["memory_peak"]}))
    [trend] = json.loads(shown.body)["trends"]
    assert [change["contestants"] for change in trend["changes"]] == [["torch"]]  # and not one of the others against it
    assert trend["changes"][0]["ratio"] == pytest.approx(2)


def test_memory_of_all_that_grew_together_is_the_machine_and_no_change_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grown(day: int) -> Day:
        run, rows = daily_run(day, facts={**MACHINE, "kernel": "6.8" if day >= AT else "6.1"})
        usual = 100 * MIB * (1.1 if day >= AT else 1.0)
        return run, [with_value(row, "peak_memory_bytes", noisy(usual)(day, 1.0)) for row in rows]

    ids = stored(tmp_path / "s", [grown(day) for day in range(DAYS)])
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "s"))
    [trend] = trends("memory_peak")
    [change] = trend["changes"]
    assert (change["cause"], change["run"], len(change["contestants"])) == ("machine", ids[AT], 3)
    assert change["ratio"] == pytest.approx(1.1, rel=0.01)

"""The figure by which each row is judged, read from the store for histories."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from fairlap.history.history_text import trend_title
from fairlap.history.model_history import history_of
from fairlap.request.fields.training import Training, optimizer_in
from fairlap.request.work import StartWeights
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row
from fairlap.store.errors import StoreError
from fairlap.store.figures import RecordedFigure, machines_of_runs, recorded_figures, stored_models
from fairlap.store.schema import RESULTS
from fairlap.store.store import open_store
from msgspec.structs import replace
from stored_histories import Day, daily_run, stored


def figures(path: Path, model: str = "mlp", since: str = "") -> list[RecordedFigure]:
    with open_store(path, reading=True) as store:
        return store.ask(recorded_figures, model, since)


def with_value(row: Row, name: str, value: object, **others: object) -> Row:
    absent = {key: why for key, why in row.absent.items() if key != name}
    return replace(row, **{name: value, "absent": absent, **others})


def before_judged(row: Row) -> Row:
    """As a store holds it whose columns an older fairlap made."""
    return replace(row, judged=None, judged_by="", absent={**row.absent, "judged": "it was not stored"})


@pytest.mark.parametrize(
    ("name", "estimate", "ns"),
    [
        ("latency_p50_ns", Estimate(5.0, 4.0, 8.0), (5.0, 4.0, 8.0)),
        ("pipeline_throughput_per_s", Estimate(4e9, 2e9, 8e9), (1.0, 0.5, 2.0)),  # a batch is four items
        ("time_to_score_s", Estimate(5.0, 4.0, 8.0), (5e9, 4e9, 8e9)),
        ("largest_rate_per_s", Estimate(1e9, 0.5e9, 2e9), (1.0, 0.5, 2.0)),
        ("loadgen_latency_ns", Estimate(5.0, 4.0, 8.0), (5.0, 4.0, 8.0)),
        ("loadgen_rate_per_s", Estimate(1e9), (1.0, None, None)),
    ],
)
def test_the_figure_of_a_row_without_one_is_the_time_that_decided_such_a_race(
    tmp_path: Path, name: str, estimate: Estimate, ns: tuple[float, float | None, float | None]
) -> None:
    run, [row, *_] = daily_run(0)
    stored(tmp_path / "s", [(run, [before_judged(with_value(row, name, estimate))])])
    [found] = figures(tmp_path / "s")
    assert (found.compared.value, found.compared.low, found.compared.high) == pytest.approx(ns)


def test_a_row_without_one_that_did_not_always_reach_the_score_was_judged_by_its_steps(tmp_path: Path) -> None:
    run, [row] = trained(0, 0.97)
    stored(tmp_path / "s", [(run, [with_value(row, "reached_share", 0.5)])])
    assert [each.quantity for each in figures(tmp_path / "s")] == ["median time of a call"]


@pytest.mark.parametrize(
    ("unit", "better", "estimate", "ns"),
    [
        ("ns", "lower", Estimate(5.0, 4.0, 8.0), (5.0, 4.0, 8.0)),
        ("s", "lower", Estimate(5.0, 4.0, 8.0), (5e9, 4e9, 8e9)),
        ("1/s", "higher", Estimate(1e9, 0.5e9, 2e9), (1.0, 0.5, 2.0)),
    ],
)
def test_the_figure_is_what_the_row_was_judged_by(
    tmp_path: Path, unit: str, better: str, estimate: Estimate, ns: tuple[float, float, float]
) -> None:
    run, [row, *_] = daily_run(0)
    others = {"judged_by": "how long it takes", "judged_unit": unit, "judged_better": better}
    row = with_value(with_value(row, "time_to_score_s", Estimate(7.0)), "judged", estimate, **others)
    stored(tmp_path / "s", [(run, [row])])
    [found] = figures(tmp_path / "s")
    assert (found.quantity, found.unit) == ("how long it takes", unit)
    assert (found.compared.value, found.compared.low, found.compared.high) == pytest.approx(ns)
    assert found.figure == estimate


def test_a_store_of_before_rows_were_judged_has_the_same_history(tmp_path: Path) -> None:
    stored(tmp_path / "s", [daily_run(0), daily_run(1)])
    written = figures(tmp_path / "s")
    with sqlite3.connect(tmp_path / "s") as db:
        db.execute("DROP VIEW results")
        for column in ("judged", "judged_low", "judged_high", "judged_by", "judged_unit", "judged_better"):
            db.execute(f"ALTER TABLE rows DROP COLUMN {column}")
        db.execute(f"CREATE VIEW {RESULTS}")
    db.close()
    assert figures(tmp_path / "s") == written
    assert len(written) == 6


def test_quantities_works_and_conditions_are_kept_apart(tmp_path: Path) -> None:
    run, [row, *_] = daily_run(0)
    [work] = run.plan.works
    others = replace(work, batch=8), replace(work, mode="grad")
    run.plan = replace(run.plan, works=(work, *others))
    fed = replace(row, data="synthetic"), replace(row, judged_by="time of a fed batch")
    stored(tmp_path / "s", [(run, [row, *fed, *(replace(row, work_id=each.id) for each in others)])])
    with open_store(tmp_path / "s", reading=True) as store:
        trends = [each.trend for each in history_of(store, "mlp", margin=0.01).trends]
    assert len(trends) == len({trend_title(each) for each in trends}) == 5


TO_A_SCORE = Estimate(5.0, 4.0, 8.0)
SGD, ADAMW = Training(optimizer_in("sgd")), Training(optimizer_in("adamw"))


def trained(
    day: int, target: float, *, training: Training = SGD, start: StartWeights | None = None, evaluates: bool = False
) -> Day:
    run, [row, *_] = daily_run(day)
    work = replace(run.plan.works[0], mode="train", training=training, start=start)
    run.plan = replace(run.plan, works=(work,), to_score=target, count_evaluation=evaluates)
    row = with_value(row, "target_score", target, work_id=work.id, mode="train", train_on="digits")
    return run, [before_judged(with_value(row, "time_to_score_s", TO_A_SCORE))]


def test_training_that_differs_in_what_was_measured_is_no_common_series(tmp_path: Path) -> None:
    days = [
        trained(0, 0.97),
        trained(1, 0.97, evaluates=True),
        trained(2, 0.9),
        trained(3, 0.97, training=ADAMW),
        trained(4, 0.97, start=StartWeights("a.npz", "0" * 64)),
        trained(5, 0.97),
    ]
    stored(tmp_path / "s", days)
    with open_store(tmp_path / "s", reading=True) as store:
        found = history_of(store, "mlp", margin=0.01).trends
    assert [len(each.trend.runs) for each in found] == [2, 1, 1, 1, 1]
    assert len({trend_title(each.trend) for each in found}) == len(found)


def test_sections_that_differ_only_in_their_quantity_have_different_titles(tmp_path: Path) -> None:
    run, [row, *_] = daily_run(0)
    loadgen = replace(row, judged_by="latency by LoadGen")
    stored(tmp_path / "s", [(run, [row]), (daily_run(1)[0], [loadgen])])
    with open_store(tmp_path / "s", reading=True) as store:
        titles = {trend_title(each.trend) for each in history_of(store, "mlp", margin=0.01).trends}
    assert len(titles) == 2


def test_only_finished_rows_of_the_model_since_the_date_are_read(tmp_path: Path) -> None:
    run, [row, *others] = daily_run(1)
    ids = stored(tmp_path / "s", [daily_run(0), (run, [replace(row, outcome="crash"), *others]), daily_run(2)])
    assert len(figures(tmp_path / "s")) == 3 + 2 + 3
    assert {each.run for each in figures(tmp_path / "s", since="2026-01-02T00:00:00+00:00")} == set(ids[1:])
    assert figures(tmp_path / "s", "another") == []
    with open_store(tmp_path / "s", reading=True) as store:
        assert store.ask(stored_models) == ["mlp"]
        assert list(store.ask(machines_of_runs, "mlp", "2026-01-03")) == ids[2:]


def test_a_machine_that_cannot_be_read_is_an_error_of_the_store(tmp_path: Path) -> None:
    stored(tmp_path / "s", [daily_run(0)])
    with open_store(tmp_path / "s") as store:
        store._db.execute("UPDATE runs SET machine = '{'")
        with pytest.raises(StoreError) as error:
            store.ask(machines_of_runs, "mlp", "")
    assert error.value.code == "E_STORE"

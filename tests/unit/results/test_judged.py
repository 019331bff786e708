"""What a race ranked by is decided once: every output shows that figure, in that order.

In both races the contestant that ranks first has the slower calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from fairlap.history.across.frontier import with_domination
from fairlap.history.across.lines import Line, entries_of
from fairlap.history.between_runs import compare_saved_runs
from fairlap.race.run import Run
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.ci_reports import junit_file
from fairlap.render.files import prometheus_file
from fairlap.render.files.markdown_file import encode
from fairlap.render.report.ranked_table import ranked_table
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.load import LoadRequest
from fairlap.request.units import Seconds
from fairlap.results.prices import Price
from fairlap.results.results import results_of
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.scenarios.load.load_messages import LoadFound
from fairlap.store.figures import recorded_figures
from fairlap.store.store import open_store
from fairlap.store.stored_rows import RowsOfRun
from runs_for_rows import a_process, a_run
from runs_in_store import keep_whole
from runs_of_precisions import planned

CALLS_NS = {"torch": 1e6, "jax": 2e6}
RATES = {"torch": 400.0, "jax": 500.0}
SECONDS = {"torch": 0.4, "jax": 0.2}
BEGAN = "2026-01-02T03:04:05+00:00"


def _varied(value: float, block: int) -> float:
    return value * (1 + 0.002 * (block % 4))


def under_load() -> Run:
    plan = planned(load=LoadRequest(p99=Seconds("20ms")))
    run = Run(plan, [], {}, {}, began_at=BEGAN)
    for block in plan.blocks:
        for name in ("torch", "jax"):
            process = a_process(block.number, name, CALLS_NS[name], plan.works[0])
            process.load = LoadFound((), _varied(RATES[name], block.number), "bound")
            run.processes.append(process)
    return run


def to_a_score() -> Run:
    plan = msgspec.structs.replace(planned(mode="infer"), to_score=0.9)
    run = Run(plan, [], {}, {}, began_at=BEGAN)
    for block in plan.blocks:
        for name in ("torch", "jax"):
            process = a_process(block.number, name, CALLS_NS[name], plan.works[0])
            seconds = _varied(SECONDS[name], block.number)
            process.learning = LearningCurve(0.9, (Evaluation(100, seconds, 0.95, 0.1),))
            run.processes.append(process)
    return run


RACES = pytest.mark.parametrize(
    ("race", "by", "unit", "figures"),
    [
        pytest.param(under_load, "largest rate", "1/s", RATES, id="load"),
        pytest.param(to_a_score, "time to a score of 90 %", "s", SECONDS, id="score"),
    ],
)
TEXTS = {"1/s": {"torch": "401/s", "jax": "501/s"}, "s": {"torch": "401.2 ms", "jax": "200.6 ms"}}


def across(run: Run, price: Price) -> list[Line]:
    rows = tuple(results_of(run, "r").rows)
    return [
        each.line for each in with_domination(entries_of([RowsOfRun("r", "r", rows, run.plan, {})], {"r": price}, {}))
    ]


@RACES
def test_a_row_has_the_figure_of_its_verdict(
    race: Callable[[], Run], by: str, unit: str, figures: dict[str, float]
) -> None:
    [found] = results_of(race(), "r").work_results
    assert [each.contestant for each in found.contestants] == ["jax", "torch"]
    assert [row.place for row in found.rows] == ["1", "2"]
    for row in found.rows:
        assert (row.judged_by, row.judged_unit, row.judged_better) == (by, unit, "higher" if unit == "1/s" else "lower")
        assert row.judged is not None
        assert row.judged.value == pytest.approx(figures[row.contestant], rel=0.01)
        assert row.judged in (row.largest_rate_per_s, row.time_to_score_s)
    fast, slow = (row.judged.value for row in found.rows if row.judged)
    assert found.rows[1].ratio is not None
    assert found.rows[1].ratio.value == pytest.approx(fast / slow if unit == "1/s" else slow / fast, rel=0.01)


@RACES
def test_tables_show_that_figure_under_its_name(
    race: Callable[[], Run], by: str, unit: str, figures: dict[str, float]
) -> None:
    shown = results_of(race(), "r")
    page, markdown = str(ranked_table(shown, shown.work_results[0])), encode(shown.rows).decode()
    assert f">{by}</th>" in page
    assert f"| {by} |" in markdown
    assert re.findall(r"<strong>([^<]+)</strong> <span class=\"bounds\"", page) == [
        TEXTS[unit][name] for name in ("jax", "torch")
    ]
    for name in figures:
        text = TEXTS[unit][name]
        assert any(name in line and text in line for line in markdown.splitlines())
        assert any(name in line and text in line for line in text_of(shown).splitlines())


@RACES
def test_charts_draw_that_figure(race: Callable[[], Run], by: str, unit: str, figures: dict[str, float]) -> None:
    pytest.importorskip("altair")
    shown = results_of(race(), "r")
    tables = chart_tables(shown)
    scale = 1e9 if unit == "s" else 1.0  # axes of durations are in nanoseconds
    for table in ("figures", "processes"):
        drawn = {record["contestant"]: record["judged"] for record in tables[table]}
        assert drawn == pytest.approx({name: scale * value for name, value in figures.items()}, rel=0.01)
    charts = {chart.key: chart for chart in charts_of(shown, tables)}
    assert by in json.dumps(charts["intervals"].spec)
    assert by in charts["percentiles"].note  # which is of calls, in another order
    assert by in charts["curves"].note
    calls = results_of(a_run(), "r")
    assert all("ranked by" not in chart.note for chart in charts_of(calls, chart_tables(calls)))


@RACES
def test_bars_are_as_long_as_that_figure(
    race: Callable[[], Run], by: str, unit: str, figures: dict[str, float]
) -> None:
    shown = results_of(race(), "r")
    page = str(ranked_table(shown, shown.work_results[0]))
    longest = max(figures.values())
    assert [float(width) for width in re.findall(r"width: ([0-9.]+)%", page)] == pytest.approx(
        [100 * figures[name] / longest for name in ("jax", "torch")], abs=0.5
    )


@RACES
def test_files_for_other_programs_hold_that_figure(
    race: Callable[[], Run], by: str, unit: str, figures: dict[str, float]
) -> None:
    shown = results_of(race(), "r")
    exposed = prometheus_file.encode(shown.rows).decode()
    cases = ElementTree.fromstring(junit_file.encode(shown)).iter("testcase")
    seconds = {case.get("name"): float(case.get("time") or 0) for case in cases}
    for name, figure in figures.items():
        [line] = [
            each for each in exposed.splitlines() if each.startswith("fairlap_race_judged{") and f'"{name}"' in each
        ]
        assert f'judged_by="{by}"' in line
        assert float(line.rpartition(" ")[2]) == pytest.approx(figure, rel=0.01)
        assert seconds[name] == pytest.approx(1 / figure if unit == "1/s" else figure, rel=0.01)


@RACES
def test_runs_side_by_side_are_compared_by_that_figure_and_its_cost(
    race: Callable[[], Run], by: str, unit: str, figures: dict[str, float]
) -> None:
    lines = {line.contestant: line for line in across(race(), Price(3.6, "EUR"))}
    assert {line.judged_by for line in lines.values()} == {by}
    assert lines["torch"].dominated_by == ["jax in r"]
    assert lines["jax"].dominated_by == []
    for name, figure in figures.items():
        cost = lines[name].judged_cost
        assert cost is not None
        assert cost.value == pytest.approx(0.001 * (1000 / figure if unit == "1/s" else figure), rel=0.01)


@RACES
def test_the_history_and_a_difference_of_runs_are_of_that_figure(
    race: Callable[[], Run], by: str, unit: str, figures: dict[str, float], tmp_path: Path
) -> None:
    with open_store(tmp_path / "s") as store:
        keep_whole(store, race())
        found = {each.contestant: each for each in store.ask(recorded_figures, "mlp", "")}
    ns = {name: 1e9 / figure if unit == "1/s" else 1e9 * figure for name, figure in figures.items()}
    assert {each.quantity for each in found.values()} == {by}
    assert {name: each.compared.value for name, each in found.items()} == pytest.approx(ns, rel=0.01)
    compared = compare_saved_runs(race(), race()).differences
    assert {each.after: each.medians_ns[1] for each in compared} == pytest.approx(ns, rel=0.01)


def test_a_contestant_alone_is_judged_by_the_time_to_the_score_that_it_reached() -> None:
    run = to_a_score()
    run.processes = [process for process in run.processes if process.contestant == "jax"]
    [row] = results_of(run, "r").rows
    assert (row.judged_by, row.place) == ("time to a score of 90 %", None)


def test_where_fewer_than_two_reached_the_score_all_are_judged_by_their_steps() -> None:
    run = to_a_score()
    for process in run.processes:
        if process.contestant == "jax" and process.block == 3:
            process.learning = LearningCurve(0.9, (Evaluation(100, 0.2, 0.5, 0.1),))
    rows = results_of(run, "r").rows
    assert {row.judged_by for row in rows} == {"median time of a call"}
    assert [row.contestant for row in rows] == ["torch", "jax"]

"""Time to an equal error: read off a curve, refused where the curve does not cross it, and proven work by work."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.bench_models.initial_value_problems.problem import END, RATES
from fairlap.bench_models.lorenz.spec import PROBLEM
from fairlap.errors import InvalidRequest
from fairlap.models.arrays import Arrays
from fairlap.race.equal_work.answers import OtherWork, array_errors
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.run import Run
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.charts.parts.static import static_spec
from fairlap.render.plan_command import command_of
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.solving.race.solve_run import SolveRun, error_at_end
from fairlap.scenarios.solving.scenario import NOT_CROSSED
from fairlap.scenarios.solving.work_precision import AtTolerance, WorkPrecision
from runs_for_rows import a_process
from small_races import small_plan

TOLERANCES = (1e-3, 1e-5, 1e-7)


def curve(order: float, scale_ns: float = 1e6, error: float = 1e-6) -> WorkPrecision:
    """Of a method of this order, which makes an error ten times its tolerance: time is error ** (-1 / order)."""
    points = [
        AtTolerance(each, 10 * each, scale_ns * (10 * each) ** (-1 / order), 5, 100 * each ** (-1 / order), None)
        for each in TOLERANCES
    ]
    return WorkPrecision(error, tuple(points))


@pytest.mark.parametrize("order", [2, 5, 8])
@pytest.mark.parametrize("error", [1e-3, 3e-5, 1e-6])
def test_the_time_of_a_method_of_known_order_is_read_off_exactly(order: float, error: float) -> None:
    found = curve(order, error=error)
    assert found.time_ns == pytest.approx(1e6 * error ** (-1 / order))
    assert found.steps == pytest.approx(100 * (error / 10) ** (-1 / order))
    assert found.evaluations is None  # nothing counts them


@pytest.mark.parametrize("error", [1e-7, 1e-2, 0.5])
def test_there_is_no_time_outside_of_the_curve(error: float) -> None:
    """An error at the loosest tolerance has no upper side; nothing is extrapolated."""
    assert curve(5, error=error).time_ns is None


def test_a_tolerance_at_which_it_gave_up_is_left_out() -> None:
    whole = curve(5)
    gave_up = msgspec.structs.replace(whole.points[1], error=None)
    found = WorkPrecision(1e-5, (whole.points[0], gave_up, whole.points[2]))
    assert found.time_ns == pytest.approx(1e6 * 1e-5 ** (-1 / 5))
    assert WorkPrecision(1e-5, (gave_up,) * 3).time_ns is None


def test_an_error_of_zero_counts_as_less_than_any_other() -> None:
    points = (AtTolerance(1e-3, 1e-2, 1e6, 1), AtTolerance(1e-5, 0.0, 1e8, 1))
    time_ns = WorkPrecision(1e-6, points).time_ns
    assert time_ns is not None
    assert 1e6 < time_ns < 1e8


def test_the_error_is_in_units_of_the_sizes_of_components() -> None:
    expected = np.zeros((2, 3))
    off = expected + np.array(PROBLEM.sizes) * np.array(((3.0, 0, 0), (0, 0, 3.0)))
    assert error_at_end(PROBLEM, off, expected) == pytest.approx(math.sqrt(2 * 9 / 6))
    assert error_at_end(PROBLEM, expected * np.nan, expected) == math.inf
    with pytest.raises(OtherWork):
        error_at_end(PROBLEM, expected[:1], expected)


def asked(**options: Any) -> RaceRequest:
    usual: dict[str, Any] = {
        "models": ("lorenz",),
        "contestants": Contestants("scipy:LSODA,scipy:RK45"),
        "mode": "solve",
        "blocks": 2,
        "seed": 1,
        "threads": 1,
    }
    return RaceRequest(**{**usual, **options})


def test_a_race_of_solvers_is_planned_in_float64_and_planned_again_by_its_own_command() -> None:
    plan = plan_of(asked(scenario_settings={"error": "1e-4"}))
    [work] = plan.works
    assert (work.mode, work.precision) == ("solve", "fp64")
    assert "solve · fp64" in work.label
    words = shlex.split(command_of(plan))
    assert words[words.index("--error") + 1] == "1e-4"
    assert words[words.index("--mode") + 1] == "solve"
    again = plan_of(asked(scenario_settings={"error": "1e-4"}, precision="fp64"))
    assert again.works == plan.works


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "bf16"},
        {"precision": "fp32"},
        {"precision": ("fp32", "fp64")},
        {"mode": "solve-grad", "models": ("robertson",)},
        {"mode": ("solve", "infer")},
        {"shapes": ("x:1",)},
        {"device": "cuda"},
        {"models": ("mlp",)},
        {"scenario_settings": {"error": "2"}},
        {"scenario_settings": {"tolerances": "1e-3"}},
        {"scenario_settings": {"tolerances": "1e-3,soon"}},
        {
            "models": ("mlp",),
            "contestants": Contestants("torch"),
            "mode": "infer",
            "scenario_settings": {"error": "1e-3"},
        },
        {"mode": "infer"},
    ],
)
def test_what_cannot_be_solved_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        plan_of(asked(**options))


def test_another_precision_is_refused_with_a_code_and_not_ignored() -> None:
    with pytest.raises(InvalidRequest) as refused:
        plan_of(asked(precision="fp32"))
    assert refused.value.code == "E_PRECISION"


def test_the_usual_precision_of_models_is_what_it_was() -> None:
    [work] = plan_of(asked(models=("mlp",), contestants=Contestants("torch"), mode="infer")).works
    assert work.precision == "fp32"


def results_with(*curves: WorkPrecision) -> Any:
    plan = plan_of(asked())
    processes: list[ProcessResult] = []
    for block in plan.blocks:
        for place, name in enumerate(plan.contestants):
            process = a_process(block.number, name.text, 1e6, plan.works[0])
            process.work_precision = curves[place]
            processes.append(process)
    return results_of(Run(plan, processes, {}, {}), "r")


def test_solvers_are_ranked_by_their_time_to_the_error() -> None:
    results = results_with(curve(5, 2e6), curve(5, 1e6))
    assert [row.contestant for row in results.rows] == ["scipy:RK45", "scipy:LSODA"]
    first = results.rows[0]
    assert first.judged_by == "time to an error of 1e-06"
    assert first.judged is not None
    assert first.judged.value == pytest.approx(1e6 * 1e-6 ** (-1 / 5), rel=1e-6)
    assert first.scenario_figures["steps_to_error"].value > 0
    assert "evaluations_to_error" in first.scenario_absent
    assert "time to an error of 1e-06" in text_of(results)


@pytest.mark.parametrize("error_of", [1e3, 1e-6])
def test_a_solver_whose_curve_does_not_cross_the_error_is_not_ranked(error_of: float) -> None:
    """It is worse than the error at all tolerances, or better at all of them."""
    points = tuple(AtTolerance(each, error_of * each, 1e6, 5) for each in TOLERANCES)
    rows = {row.contestant: row for row in results_with(curve(5), WorkPrecision(1e-6, points)).rows}
    short = rows["scipy:RK45"]
    assert (short.outcome, short.code, short.place) == ("unqualified", NOT_CROSSED, None)
    assert rows["scipy:LSODA"].outcome == "finished"


def test_a_solver_that_did_not_come_to_the_error_says_at_which_tolerances_it_gave_up() -> None:
    points = (*(AtTolerance(each, 1e3 * each, 1e6, 5) for each in TOLERANCES[:2]), AtTolerance(TOLERANCES[2]))
    rows = {row.contestant: row for row in results_with(curve(5), WorkPrecision(1e-6, points)).rows}
    short = rows["scipy:RK45"]
    assert short.code == NOT_CROSSED
    assert "gave up at 1e-07" in short.message


def test_the_picture_draws_every_tolerance_of_every_contestant() -> None:
    results = results_with(curve(5, 2e6), curve(5, 1e6))
    tables = chart_tables(results)
    assert len(tables["scenario work-precision"]) == 2 * 2 * len(TOLERANCES)  # blocks, contestants
    [chart] = [each for each in charts_of(results, tables) if each.key == "scenario-work-precision"]
    spec = static_spec(chart, results, results.work_results[0], tables)
    assert spec is not None
    assert spec["data"] == {"name": "scenario work-precision"}
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["scipy:RK45", "scipy:LSODA"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SolveRun:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    work = Work("lorenz", 1, "solve", "fp64")
    plan = small_plan("scipy", work, scenario_settings={"tolerances": "1e-3,1e-6"})
    return SolveRun(plan, plan.blocks[0], materials_for(work, 0), tmp_path, plan.contestants[0])


def answer(run: SolveRun, which: str, end_off: float = 1e-6, rates_off: float = 0.0) -> Arrays:
    right = run._materials.reference(which)
    return {
        END: right[END] + end_off * np.array(PROBLEM.sizes),
        RATES: right[RATES] * (1 + rates_off),
        "steps": np.array(100.0),
    }


def result() -> ProcessResult:
    return ProcessResult(0, 0, "scipy", "w", "as-found")


def test_right_answers_give_the_error_at_a_tolerance(run: SolveRun) -> None:
    found = result()
    run.hold_seen(1, {which: answer(run, which, 2e-6) for which in ("inputs", "changed")}, found)
    run.record(found)
    assert found.work_precision is not None
    point = found.work_precision.points[1]
    assert (point.tolerance, point.steps) == (1e-6, 100.0)
    assert point.error == pytest.approx(2e-6)
    assert all(error.right for error in found.errors)
    run.hold_drawn(1, "unseen-0", answer(run, "unseen-0", 5e-6), found, "a timed call")


def test_a_solver_that_gives_up_has_no_error_there(run: SolveRun) -> None:
    found = result()
    run.hold_seen(0, {which: answer(run, which, math.nan) for which in ("inputs", "changed")}, found)
    run.record(found)
    assert found.work_precision is not None
    assert found.work_precision.points[0].error is None


def test_an_answer_without_an_end_says_after_how_much_work_the_solver_gave_up(run: SolveRun) -> None:
    got = {**answer(run, "inputs", math.nan), "steps": np.array(0.0), "evaluations": np.array(1e5)}
    errors = array_errors(run._materials, got, "inputs", "before")
    assert {error.what: error.why for error in errors} == {
        END: "the solver gave up after 100,000 evaluations",
        RATES: "",
    }
    assert not any(error.why for error in array_errors(run._materials, answer(run, "inputs"), "inputs", "before"))


def disqualified_by(run: SolveRun, by_set: dict[str, Arrays]) -> str:
    with pytest.raises(OtherWork) as wrong:
        run.hold_seen(0, by_set, result())
    return wrong.value.code


def test_unequal_work_is_disqualified(run: SolveRun) -> None:
    first, second = answer(run, "inputs"), answer(run, "changed")
    other_equations = answer(run, "changed", rates_off=1e-9)
    assert disqualified_by(run, {"inputs": first, "changed": other_equations}) == "E_OUTPUT"
    assert disqualified_by(run, {"inputs": first, "changed": {**second, END: first[END]}}) == "E_STALE_ANSWER"
    assert disqualified_by(run, {"inputs": {RATES: first[RATES]}, "changed": second}) == "E_OUTPUT"


def test_a_timed_call_that_is_far_worse_than_others_is_disqualified(run: SolveRun) -> None:
    run.hold_seen(0, {name: answer(run, name) for name in ("inputs", "changed")}, result())
    with pytest.raises(OtherWork) as wrong:
        run.hold_drawn(0, "unseen-1", answer(run, "unseen-1", 1e-2), result(), "a timed call")
    assert wrong.value.code == "E_OUTPUT"


@pytest.fixture
def gradient_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SolveRun:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    at_end = {which: np.full((1, 3), place + 1.0) for place, which in enumerate(("inputs", "changed"))}
    monkeypatch.setattr(
        Materials,
        "reference",
        lambda _self, which: {
            END: at_end[which],
            RATES: at_end[which],
            "loss": np.array(1.0),
            "grad/start": at_end[which],
        },
    )
    work = Work("lorenz", 1, "solve-grad", "fp64")
    plan = small_plan("torchdiffeq", work, scenario_settings={"tolerances": "1e-3,1e-6"})
    return SolveRun(plan, plan.blocks[0], materials_for(work, 0), tmp_path, plan.contestants[0])


def test_the_error_of_a_gradient_counts_where_it_is_larger_than_that_of_the_end(gradient_run: SolveRun) -> None:
    found = result()
    right = {which: answer(gradient_run, which, 2e-6) for which in ("inputs", "changed")}
    for which in right:
        slopes = gradient_run._materials.reference(which)
        right[which] = {**right[which], "grad/start": slopes["grad/start"] * (1 + 3e-5), "loss": slopes["loss"]}
    gradient_run.hold_seen(1, right, found)
    gradient_run.record(found)
    assert found.work_precision is not None
    assert found.work_precision.points[1].error == pytest.approx(3e-5)
    lacking = {
        which: {name: each for name, each in got.items() if name != "grad/start"} for which, got in right.items()
    }
    with pytest.raises(OtherWork) as wrong:
        gradient_run.hold_seen(1, lacking, found)
    assert wrong.value.code == "E_GRADIENT"


def test_a_gradient_is_ranked_as_such() -> None:
    plan = plan_of(asked(mode="solve-grad", contestants=Contestants("torchdiffeq,torchdiffeq:gradient=adjoint")))
    assert [work.mode for work in plan.works] == ["solve-grad"]
    assert (
        plan.scenarios[0].judge(plan, plan.works[0], {}, ()).judged.by == "time to an error of 1e-06 with the gradient"
    )

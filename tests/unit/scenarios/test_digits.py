"""Races of digits: who is ranked, what a wrong answer is shown as, and that timed calls count too."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.registry import find
from fairlap.models.spec import UNIT_ROUNDOFF
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.run import Run
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.charts.parts.static import static_spec
from fairlap.render.files.markdown_table import columns_shown
from fairlap.render.plan_command import command_of
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.scenarios.digits.digits_found import DigitsFound
from fairlap.scenarios.digits.results.columns import MEASURED
from fairlap.scenarios.digits.scenario import FEW_DIGITS, Digits
from fairlap.scenarios.process_result import AnswerError, ProcessResult
from installed_package import install_frameworks
from one_block import processes_of_one_block
from runs_for_rows import a_process

SUM, NORM = "hard-sum-r2-n50-c2", "hard-layernorm-r2-n50-o100"
VARIANCE = "hard-variance-r4-n200-o1000"


def asked(**options: Any) -> RaceRequest:
    usual: dict[str, Any] = {
        "models": (SUM,),
        "contestants": Contestants("torch,jax"),
        "blocks": 8,
        "seed": 1,
        "threads": 1,
    }
    return RaceRequest(**{**usual, **options})


def results_with(errors: dict[str, float], least: float = 1e-6, others: int = 0, **options: Any) -> Any:
    """By contestant, the relative error of its worst answer; the first one is twice as slow."""
    plan = plan_of(asked(**options))
    processes: list[ProcessResult] = []
    for block in plan.blocks:
        for place in block.order:
            name, work = plan.contestants[place].text, plan.works[block.work]
            process = a_process(block.number, name, 2e6 / (place + 1), work)
            worst = AnswerError("result", "timed call", math.nan, 1.0, errors[name], True)
            process.errors = [AnswerError("result", "before", math.nan, 0.0, 0.0, True), worst]
            process.digits = DigitsFound(UNIT_ROUNDOFF["fp32"], least, others, 100)
            processes.append(process)
    return results_of(Run(plan, processes, {}, {}), "r")


def test_digits_are_raced_where_the_operation_is_one_on_which_they_are_lost() -> None:
    plan = plan_of(asked(models=(SUM, "gemm-m2-n2-k2")))
    assert [isinstance(each, Digits) for each in plan.scenarios] == [True, False]
    words = shlex.split(command_of(plan_of(asked(scenario_settings={"digits": "3.5"}))))
    assert words[words.index("--digits") + 1] == "3.5"
    assert len(plan_of(asked(models=("hard-special-*",))).works) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"models": ("mlp",), "scenario_settings": {"digits": "3"}},
        {"scenario_settings": {"digits": "-1"}},
        {"scenario_settings": {"digits": "many"}},
        {"scenario_settings": {"digits": "nan"}},
        {"models": ("hard-solve-hilbert-n4",), "precision": "bf16"},
        {"models": ("hard-subnormal-r1-n4",), "precision": "fp16"},
        {"mode": "grad"},
        {"batch": 2},
    ],
)
def test_what_cannot_be_raced_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        plan_of(asked(**options))


def test_contestants_that_keep_half_of_the_possible_digits_are_ranked_by_time() -> None:
    results = results_with({"torch": 1e-6, "jax": 9e-4})
    assert [(row.contestant, row.place, row.outcome) for row in results.rows] == [
        ("jax", "1", "finished"),
        ("torch", "2", "finished"),
    ]
    jax = results.rows[0]
    assert jax.scenario_figures["digits_kept"].value == pytest.approx(-math.log10(9e-4))
    assert jax.scenario_figures["digits_possible"].value == pytest.approx(6)
    assert jax.judged_by == "median time of a call that keeps half of the possible digits"
    assert jax.error_relative == 9e-4


@pytest.mark.parametrize("error", [1.1e-3, 0.5, 1.0, math.inf, math.nan])
def test_a_faster_contestant_with_a_wrong_answer_is_shown_and_not_ranked(error: float) -> None:
    results = results_with({"torch": 1e-6, "jax": error}, others=3)
    rows = {row.contestant: row for row in results.rows}
    wrong = rows["jax"]
    assert (wrong.outcome, wrong.code, wrong.place) == ("unqualified", FEW_DIGITS, None)
    assert wrong.latency_p50_ns is not None
    assert wrong.latency_p50_ns.value < 1.1e6
    assert wrong.answers == rows["torch"].answers == MEASURED
    assert wrong.scenario_figures["wrong_special_values_share"].value == pytest.approx(0.03)
    assert [each.winner for work in results.work_results if (each := work.standing)] in ([], [None], ["torch"])
    shown = text_of(results)
    assert "not ranked" in shown
    assert FEW_DIGITS in shown
    assert f"{max(-math.log10(error), 0) if error < 1 else 0.0:.1f} digits of the 6.0" in shown


def test_where_the_problem_leaves_no_digit_nobody_is_ranked() -> None:
    results = results_with({"torch": 0.2, "jax": 0.9}, least=0.5)
    assert {row.code for row in results.rows} == {FEW_DIGITS}


def test_the_digits_that_are_asked_for_decide_instead() -> None:
    errors = {"torch": 1e-5, "jax": 1e-2}
    strict = results_with(errors, scenario_settings={"digits": "5.5"})
    assert {row.code for row in strict.rows} == {FEW_DIGITS}
    lax = results_with(errors, scenario_settings={"digits": "0"})
    assert {row.outcome for row in lax.rows} == {"finished"}
    assert lax.rows[0].judged_by == "median time of a call that keeps 0 digits"


def test_tables_of_many_operations_say_how_many_digits_a_time_is_worth() -> None:
    models = (SUM, NORM, "hard-special-max-r2-n5", "hard-subnormal-r1-n8")
    results = results_with({"torch": 1e-6, "jax": 0.1}, models=models, blocks=6)
    shown = text_of(results)
    assert shown.count("6.0 digits") == len(models)
    assert shown.count("unqualified, 1.0 digits") == len(models)
    assert shown.count(f"] {FEW_DIGITS} ") == len(models)


def test_digits_are_in_the_markdown_table_and_the_picture() -> None:
    results = results_with({"torch": 1e-6, "jax": 1e-4})
    [also] = [column for column in columns_shown(results.rows) if column.head == "also"]
    assert "digits kept 4" in also.cell(results.rows[0])
    tables = chart_tables(results)
    [chart] = [each for each in charts_of(results, tables) if each.key == "scenario-digits"]
    spec = static_spec(chart, results, results.work_results[0], tables)
    assert spec is not None
    points = spec["datasets"]["scenario digits"]
    assert {(each["contestant"], round(each["kept"])) for each in points} == {("torch", 6), ("jax", 4)}


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ProcessResult]]:
    folder = tmp_path_factory.mktemp("digits")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        install_frameworks(folder / "package", patched, {"unstable": "unstable_numpy:UnstableNumpy"})
        names = "unstable,unstable:of-squares,unstable:tenfold,unstable:first"
        yield processes_of_one_block(names, Work(VARIANCE, 1), seconds=0.02)


def digits_of(process: ProcessResult) -> tuple[float, float]:
    figures = {each.name: each.read for each in Digits.figures}
    kept, possible = figures["digits_kept"](process), figures["digits_possible"](process)
    assert kept is not None
    assert possible is not None
    return kept, possible


@pytest.mark.slow
def test_a_race_measures_the_digits_of_each_contestant_and_disqualifies_none(raced: dict[str, ProcessResult]) -> None:
    assert {name: process.code for name, process in raced.items()} == dict.fromkeys(raced, "")
    kept = {name: digits_of(process)[0] for name, process in raced.items()}
    possible = digits_of(raced["unstable"])[1]
    assert kept["unstable"] > possible / 2
    assert kept["unstable:of-squares"] < 2
    assert kept["unstable:tenfold"] == 0


@pytest.mark.slow
def test_an_answer_that_is_wrong_in_timed_calls_alone_has_no_digits(raced: dict[str, ProcessResult]) -> None:
    cheat = raced["unstable:first"]
    assert next(error for error in cheat.errors if error.when == "before").distance < 1e-5
    assert digits_of(cheat)[0] == 0


def test_the_spec_of_a_hard_operation_names_its_own_package() -> None:
    assert find(SUM).spec.operations_per_item == 2 * 49

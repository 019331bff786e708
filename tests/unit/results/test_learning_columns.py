"""Columns and warnings of training to a score, from made-up curves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from fairlap.cli.races.run_race import has_a_result
from fairlap.meters.disturbances import OWN, WAITED
from fairlap.meters.energy import EnergyOfBlock, EnergyRead
from fairlap.models.task_metrics import Score
from fairlap.race.run import Run
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.data.training_data import TrainingData
from fairlap.request.names import Contestants
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.columns.learning.learning_curves import curves_apart
from fairlap.results.prices import Price
from fairlap.results.results import Results, results_of
from fairlap.scenarios.learning.render.shown import learning_text
from fairlap.scenarios.learning.results.columns import steps_differ
from fairlap.scenarios.learning.scenario import STEP_TIME, STEPS_TO_SCORE
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.scenarios.process_result import ProcessResult
from fairlap.verdict import LATENCY, TIME_TO_SCORE
from msgspec.structs import replace
from runs_for_rows import a_process
from runs_of_precisions import planned

TARGET = 0.9


def curve(step_s: float, scores: Sequence[float], losses: Sequence[float] | None = None) -> LearningCurve:
    losses = [1.0 - score for score in scores] if losses is None else losses
    return LearningCurve(
        TARGET,
        tuple(
            Evaluation(44 * n, 44 * n * step_s, score, loss)
            for n, (score, loss) in enumerate(zip(scores, losses, strict=True), start=1)
        ),
    )


def raced(
    curve_of: Callable[[str, int], LearningCurve],
    price: Price | None = None,
    names: str = "torch,jax",
    scores_of: Callable[[str, int], dict[str, Score]] = lambda _name, _block: {},
) -> Results:
    plan = msgspec.structs.replace(planned(contestants=Contestants(names), mode="infer"), to_score=TARGET)
    processes = []
    for block in plan.blocks:
        for place in block.order:
            name = plan.contestants[place].text
            process = a_process(block.number, name, 1e6, plan.works[block.work])
            process.learning = curve_of(name, block.number)
            process.scores = scores_of(name, block.number)
            processes.append(process)
    return results_of(Run(plan, processes, {}, {}), "r", price=price)


def test_a_row_says_what_was_learnt() -> None:
    data = TrainingData("pets.csv:kind", "/data/pets.csv", "kind", 0.25, "0123abcd4567")
    plan = planned(mode="infer")
    plan = replace(plan, works=tuple(replace(work, train_on=data) for work in plan.works))
    processes = [a_process(block.number, "torch", 1e6, plan.works[block.work]) for block in plan.blocks]
    row = results_of(Run(plan, processes, {}, {}), "r").rows[0]
    assert (row.train_on, row.train_on_hash) == ("25 % of pets.csv:kind (0123abcd)", "0123abcd4567")
    assert {(row.train_on, row.train_on_hash) for row in raced(lambda _name, _block: curve(1e-3, REACHED)).rows} == {
        ("", "")
    }


REACHED = (0.5, 0.8, 0.95)
NOT_REACHED = (0.5, 0.8, 0.85)


def test_time_and_steps_until_the_score_are_compared() -> None:
    steps_s = {"torch": 2e-3, "jax": 1e-3}
    found = raced(lambda name, block: curve(steps_s[name] * (1 + 0.01 * block), REACHED))
    rows = {row.contestant: row for row in found.rows}
    assert {row.steps_to_score for row in rows.values()} == {132.0}
    assert rows["torch"].time_to_score_s is not None
    assert rows["torch"].time_to_score_s.value == pytest.approx(132 * 2e-3, rel=0.05)
    assert (rows["jax"].reached_share, rows["jax"].best_score, rows["jax"].target_score) == (1.0, 0.95, TARGET)
    [work_result] = found.work_results
    [time] = work_result.comparisons
    assert (time.metric, {time.a, time.b}) == (TIME_TO_SCORE, {"torch", "jax"})
    assert time.verdict.value == ("slower" if time.a == "torch" else "faster")
    assert [each.contestant for each in work_result.contestants] == ["jax", "torch"]
    assert (rows["jax"].place, rows["torch"].place, rows["torch"].baseline) == ("1", "2", "jax")
    assert rows["torch"].ratio is not None
    assert rows["torch"].ratio.value == pytest.approx(2.0)
    by_metric = {each.metric: each.comparisons for each in work_result.other_quantities}
    assert by_metric[STEPS_TO_SCORE][0].ratio == 1.0
    assert by_metric[STEP_TIME][0].ratio == pytest.approx(1.0, abs=0.01)
    assert TIME_TO_SCORE not in by_metric
    assert "to a score of 90 %" in text_of(found)


def test_a_row_says_that_not_every_epoch_was_scored() -> None:
    every = raced(lambda _name, _block: curve(1e-3, REACHED))
    found = raced(lambda _name, _block: scored_seldom(curve(1e-3, REACHED)))
    for row, same in zip(found.rows, every.rows, strict=True):
        assert "scored every 3 epochs" in learning_text(row)
        assert "scored every" not in learning_text(same)
        assert (row.scored_every_epochs, same.scored_every_epochs) == (3.0, 1.0)
        assert (row.time_to_score_s, row.steps_to_score) == (same.time_to_score_s, same.steps_to_score)
        assert (row.best_score, row.reached_share) == (0.95, 1.0)
    drawn = [record for record in chart_tables(found)["learning"] if record["contestant"] == "jax"]
    assert {(record["steps"], record["score"]) for record in drawn} == {(44, 0.5), (132, 0.95)}


def scored_seldom(of: LearningCurve) -> LearningCurve:
    """After the first epoch and the last."""
    first, second, third = of.evaluations
    return replace(of, evaluations=(first, replace(second, score=None, loss=None), third), scored_every=3)


def test_a_row_has_the_time_of_a_step_in_the_epochs() -> None:
    row = raced(lambda _name, _block: curve(2e-3, REACHED)).rows[0]
    assert row.step_in_epochs_ns is not None
    assert row.step_in_epochs_ns.value == pytest.approx(2e6)


@pytest.mark.parametrize(("step_s", "warned"), [(1.3e-3, True), (1.05e-3, False), (0.95e-3, False), (0.7e-3, True)])
def test_steps_that_take_another_time_in_the_epochs_than_alone_have_a_warning(step_s: float, warned: bool) -> None:
    found = raced(lambda _name, _block: curve(step_s, REACHED))
    for row in found.rows:
        assert ("W_STEPS_DIFFER" in {warning.code for warning in row.warnings}) == warned


@pytest.mark.parametrize(
    ("epoch_steps_ns", "warned"),
    [
        ((3e6, 5.6e6), True),
        ((0.5e6, 0.6e6), True),
        ((3e6, 1e6), False),  # one of two may have been disturbed
        ((1.12e6, 1.13e6), False),  # no more than the rounds are apart
        ((5e6,), False),
    ],
)
def test_few_epochs_are_compared_with_the_rounds(epoch_steps_ns: tuple[float, ...], warned: bool) -> None:
    every = raced(lambda _name, _block: curve(1e-3, REACHED)).work_results[0].contestants[0]
    result = dataclasses.replace(every, processes=every.processes[:1])
    [process] = result.processes
    process.rounds_ns = [1e6 * (0.95 + 0.01 * turn) for turn in range(10)]
    ends_s = np.cumsum([44 * each / 1e9 for each in epoch_steps_ns])
    learnt = tuple(Evaluation(44 * n, end_s, 0.5, 0.5) for n, end_s in enumerate(map(float, ends_s), start=1))
    process.learning = LearningCurve(TARGET, learnt)
    assert (steps_differ(result) is not None) == warned


def test_the_warning_names_waiting_in_the_rounds_where_steps_are_quicker_in_the_epochs() -> None:
    result = raced(lambda _name, _block: curve(0.5e-3, REACHED)).work_results[0].contestants[0]
    for process in result.processes:
        process.machine, process.machine_after_turns = {WAITED: 0.31}, {WAITED: 0.17}
    notice = steps_differ(result)
    assert notice is not None
    assert "31 %" in notice.text
    assert "17 %" not in notice.text


def test_the_warning_names_fairlap_where_its_own_process_used_a_core() -> None:
    result = raced(lambda _name, _block: curve(2e-3, REACHED)).work_results[0].contestants[0]
    for process in result.processes:
        process.machine_after_turns = {OWN: 0.5}
    notice = steps_differ(result)
    assert notice is not None
    assert "fairlap" in notice.text


def test_a_row_says_which_part_of_the_time_was_evaluation() -> None:
    def with_evaluation(name: str, block: int) -> LearningCurve:
        found = curve(1e-3 * (1 + 0.01 * block), REACHED)
        if name == "jax":
            return found
        counted = (replace(each, answered_s=0.1 * each.trained_s) for each in found.evaluations)
        return replace(found, evaluations=tuple(counted))

    rows = {row.contestant: row for row in raced(with_evaluation).rows}
    counted, whole = rows["torch"].evaluation_to_score_s, rows["torch"].time_to_score_s
    assert counted is not None
    assert whole is not None
    assert counted.value == pytest.approx(0.1 * whole.value)
    assert rows["jax"].evaluation_to_score_s is None
    assert "evaluation" in learning_text(rows["torch"])
    assert "evaluation" not in learning_text(rows["jax"])


def test_a_contestant_that_did_not_always_reach_the_score_is_not_ranked() -> None:
    """Its row has the median of Kaplan and Meier, which counts such processes as longer."""
    found = raced(
        lambda name, block: curve(1e-3, NOT_REACHED if name == "jax" and block < 3 else REACHED),
        names="torch,jax,tensorflow",
    )
    row = next(row for row in found.rows if row.contestant == "jax")
    assert (row.outcome, row.code, row.place) == ("unqualified", "E_SCORE_NOT_REACHED", None)
    assert row.reached_share == 5 / 8
    assert row.time_to_score_s is not None
    assert row.time_to_score_s.value == pytest.approx(0.132)
    [work_result] = found.work_results
    assert [{each.a, each.b} for each in work_result.comparisons] == [{"torch", "tensorflow"}]
    assert "E_SCORE_NOT_REACHED" in text_of(found)


def test_where_fewer_than_two_reach_the_score_steps_are_compared() -> None:
    found = raced(lambda name, block: curve(1e-3, NOT_REACHED if name == "jax" and block < 3 else REACHED))
    [work_result] = found.work_results
    [comparison] = work_result.comparisons
    assert (comparison.metric, {row.outcome for row in found.rows}) == (LATENCY, {"finished"})
    by_metric = {each.metric: each for each in work_result.other_quantities}
    assert by_metric[TIME_TO_SCORE].comparisons == ()
    assert by_metric[TIME_TO_SCORE].without == ("jax",)


def test_a_score_that_few_reached_is_absent() -> None:
    found = raced(lambda _, block: curve(1e-3, REACHED if block < 2 else NOT_REACHED))
    row = found.rows[0]
    assert (row.time_to_score_s, row.steps_to_score, row.reached_share) == (None, None, 0.25)
    assert "2 of 8" in row.absent["time_to_score_s"]


def test_metrics_of_what_was_learnt_are_over_processes() -> None:
    def scores(name: str, block: int) -> dict[str, Score]:
        top1 = {"torch": 0.90, "jax": 0.95}[name] + 0.002 * block
        return {"top1": Score(top1, None, None, "", 359), "r2": Score(0.1 * block - 0.2, None, None, "", 359)}

    found = raced(lambda _name, _block: curve(1e-3, REACHED), scores_of=scores)
    rows = {row.contestant: row for row in found.rows}
    top1 = rows["torch"].scores["top1"]
    assert top1.low is not None
    assert top1.high is not None
    assert 0.9 <= top1.low < top1.value < top1.high <= 0.914 + 1e-9
    assert top1.value == pytest.approx(0.907, abs=2e-3)
    assert (top1.items, top1.interval, top1.why_no_interval) == (359, "over 8 processes", "")
    assert rows["torch"].accuracy == Estimate(top1.value, top1.low, top1.high)
    assert rows["torch"].accuracy_drop == pytest.approx(0.05)
    assert rows["jax"].accuracy_drop == 0.0
    r2 = rows["torch"].scores["r2"]
    assert (r2.low, r2.high, r2.interval) == (None, None, "")
    assert -0.2 <= r2.value <= 0.5
    assert r2.why_no_interval


def test_metrics_of_few_processes_have_no_interval() -> None:
    def scores(_name: str, block: int) -> dict[str, Score]:
        return {"top1": Score(0.9 + 0.002 * block, None, None, "", 359)} if block < 3 else {}

    row = raced(lambda _name, _block: curve(1e-3, REACHED), scores_of=scores).rows[0]
    assert (row.scores["top1"].low, row.scores["top1"].interval) == (None, "")
    assert row.scores["top1"].why_no_interval
    assert row.accuracy is not None
    assert row.accuracy.low is None


def with_energy(of: LearningCurve, joules: float | None) -> LearningCurve:
    """Each epoch took so many joules, as far as a sensor saw."""
    bounds = (0.9 * joules, 1.1 * joules) if joules else (0.5, 1.5)
    read = EnergyRead("package", joules, *bounds, "" if joules else "too short")
    energy = EnergyOfBlock(0.1, 44, [read])
    return LearningCurve(of.target, tuple(msgspec.structs.replace(each, energy=(energy,)) for each in of.evaluations))


def test_the_energy_to_the_score_is_that_of_the_epochs_until_then() -> None:
    found = raced(lambda name, _: with_energy(curve(1e-3, (*REACHED, 0.99)), 5.0 if name == "jax" else 7.0))
    energies = {row.contestant: row.energy_to_score_j for row in found.rows}
    for name, joules in (("jax", 15.0), ("torch", 21.0)):
        energy = energies[name]
        assert energy is not None
        assert (energy.value, energy.low, energy.high) == pytest.approx((joules, 0.9 * joules, 1.1 * joules))


def test_energy_is_censored_as_the_time_is() -> None:
    found = raced(lambda _, block: with_energy(curve(1e-3, NOT_REACHED if block < 3 else REACHED), 5.0 + block))
    energy = found.rows[0].energy_to_score_j
    assert energy is not None
    assert energy.value == pytest.approx(
        3 * (5.0 + 5)
    )  # of the five that reached it after the others had been given up
    few = raced(lambda _, block: with_energy(curve(1e-3, NOT_REACHED if block else REACHED), 5.0))
    assert few.rows[0].energy_to_score_j is None
    assert "1 of 8" in few.rows[0].absent["energy_to_score_j"]


@pytest.mark.parametrize("seen", [None, "unresolved"])
def test_energy_that_no_sensor_resolved_is_absent_with_the_reason(seen: str | None) -> None:
    found = raced(lambda _, __: with_energy(curve(1e-3, REACHED), None) if seen else curve(1e-3, REACHED))
    row = found.rows[0]
    assert row.energy_to_score_j is None
    assert row.time_to_score_s is not None
    assert ("too short; it is between 1.5 and 4.5 J" in row.absent["energy_to_score_j"]) == bool(seen)


def processes(apart: float) -> dict[str, list[ProcessResult]]:
    """Losses of six epochs that vary by 10 % between blocks, and by ``apart`` between contestants of a block."""
    rng = np.random.default_rng(5)
    plan = planned(mode="infer")
    found: dict[str, list[ProcessResult]] = {"torch": [], "jax": []}
    for block in range(6):
        of_block = np.exp(-np.arange(6) / 2 + 0.1 * rng.standard_normal(6))
        for name, own in found.items():
            process = a_process(block, name, 1e6, plan.works[0])
            losses = of_block * np.exp(apart * rng.standard_normal(6)) if apart < 1 else of_block
            if apart >= 1 and name == "jax":
                losses = of_block * 1.5
            process.learning = curve(1e-3, [0.5] * 6, losses.tolist())
            own.append(process)
    return found


@pytest.mark.parametrize(("apart", "warned"), [(0.01, False), (0.1, False), (1.0, True)])
def test_contestants_that_learn_otherwise_are_named(apart: float, warned: bool) -> None:
    notice = curves_apart(processes(apart))
    assert (notice is not None) == warned
    assert notice is None or notice.code == "W_CURVES_APART"


def test_curves_are_compared_where_all_of_them_were_scored() -> None:
    apart = processes(1.0)
    assert curves_apart(apart) is not None
    for process in apart["torch"]:
        assert process.learning is not None
        unscored = (replace(each, score=None, loss=None) for each in process.learning.evaluations[:-1])
        process.learning = replace(process.learning, evaluations=(*unscored, process.learning.evaluations[-1]))
    assert curves_apart(apart) is not None
    for process in apart["jax"]:
        assert process.learning is not None
        last = replace(process.learning.evaluations[-1], score=None, loss=None)
        process.learning = replace(process.learning, evaluations=(*process.learning.evaluations[:-1], last))
    assert curves_apart(apart) is None


def test_few_blocks_show_nothing() -> None:
    assert curves_apart({name: own[:2] for name, own in processes(1.0).items()}) is None
    assert curves_apart({"torch": processes(1.0)["torch"]}) is None


def test_an_epoch_that_is_too_short_for_the_sensor_counts_by_its_bounds() -> None:
    """As long as all epochs together are resolved."""

    def energy_of(joules: float | None, low: float, high: float) -> EnergyOfBlock:
        return EnergyOfBlock(0.1, 44, [EnergyRead("package", joules, low, high, "" if joules else "too short")])

    epochs = [energy_of(5.0, 4.9, 5.1), energy_of(None, 0.0, 0.4), energy_of(6.0, 5.9, 6.1)]

    def curve_of(_name: str, _block: int) -> LearningCurve:
        of = curve(1e-3, REACHED)
        pairs = zip(of.evaluations, epochs, strict=True)
        return LearningCurve(of.target, tuple(msgspec.structs.replace(each, energy=(read,)) for each, read in pairs))

    energy = raced(curve_of).rows[0].energy_to_score_j
    assert energy is not None
    assert (energy.value, energy.low, energy.high) == pytest.approx((11.2, 10.8, 11.6))


@pytest.mark.parametrize(("reached", "finds"), [(REACHED, True), (NOT_REACHED, False)])
def test_training_in_which_no_contestant_reaches_the_score_has_no_result(
    reached: tuple[float, ...], finds: bool
) -> None:
    """The exit status of the command follows it."""
    assert has_a_result(raced(lambda _name, _block: curve(1e-3, reached))) is finds

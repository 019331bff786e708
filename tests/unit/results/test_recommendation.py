"""A recommendation never goes beyond the verdict; the frontier holds what no other beats in time and error."""

from __future__ import annotations

import itertools
import math

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.run import Run
from fairlap.render.charts.parts.frontier import Point, with_frontier
from fairlap.request.names import Contestants
from fairlap.results.decision.decision import Decision
from fairlap.results.decision.evidence import Difference, evidence_of
from fairlap.results.decision.question import decide, question_of
from fairlap.results.decision.recommendation import recommend
from fairlap.results.decision.requirements import Status
from fairlap.results.decision.uses import LATENCY, USES, Weight, use_named
from fairlap.results.prices import price_given
from fairlap.results.results import results_of
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.verdict import TIME_TO_SCORE, Verdict
from hypothesis import given
from hypothesis import strategies as st
from runs_for_rows import a_process, a_run, crashed
from runs_of_precisions import planned
from runs_side_by_side import scale_times
from runs_to_show import run_of

ALL_USES = list(USES)


def decision(run: Run, require: str = "", use: str = "", *, price: str = "1/h") -> Decision:
    question = question_of(require, use)
    assert question is not None
    return decide(results_of(run, price=price_given(price) if price else None), question)


@pytest.mark.parametrize("use", ALL_USES)
def test_the_weights_add_up_to_1_and_are_in_the_decision(use: str) -> None:
    found = decision(a_run(), use=use)
    assert sum(found.weights.values()) == pytest.approx(1)
    assert len(found.sentences) == 3


@pytest.mark.parametrize("use", ALL_USES)
def test_the_one_that_the_verdict_calls_faster_is_recommended_where_nothing_else_differs(use: str) -> None:
    assert decision(a_run(), use=use).recommended == ["jax:fast"]


def test_what_is_not_ranked_or_does_not_qualify_is_never_recommended() -> None:
    assert decision(a_run(), "latency>1.5ms", "cloud").recommended == ["torch"]
    run = a_run()
    fast = [process for process in run.processes if process.contestant == "jax:fast"]
    fast[0].outcome, fast[0].message = "disqualified", "its answer is wrong"
    assert decision(run, use="cloud").recommended == ["torch"]
    assert decision(a_run(), "energy<1J", "edge").recommended == []  # unknown is not enough


def test_contestants_that_the_verdict_does_not_separate_are_named_together() -> None:
    run = a_run()
    for process in run.processes:
        if process.contestant == "jax:fast":
            scale_times(process, 2)
    found = decision(run, use="cloud")
    assert sorted(found.recommended) == ["jax:fast", "torch"]


def test_few_blocks_show_nothing_however_far_the_figures_are_apart() -> None:
    found = decision(a_run(blocks=3), use="research")
    assert sorted(found.recommended) == ["jax:fast", "torch"]


def test_columns_without_a_figure_are_named_as_unknown() -> None:
    found = decision(a_run(), use="cloud", price="")
    assert "no price was given" in found.sentences[2]
    assert "no source of power was read" in decision(a_run(), use="edge").sentences[2]


def test_over_several_works_the_mean_of_ratios_has_its_interval_and_all_works_have_to_qualify() -> None:
    run = run_of(("torch", "jax"), batches=(4, 8))
    found = decision(run, "memory<1GB", "research")
    [mean] = found.means
    assert (mean.contestant, mean.baseline, mean.works, mean.blocks) == ("jax", "torch", 2, 16)
    assert mean.ratio == pytest.approx(2, rel=0.01)
    assert mean.low <= mean.ratio <= mean.high
    assert found.recommended == ["torch"]
    tight = decision(run, "latency<1.5ms", "research")  # torch takes 1 ms at batch 4, and 2 ms at batch 8
    assert tight.recommended == []
    assert [each.qualifies for each in tight.judged if each.contestant == "torch"] == ["yes", "no"]


@pytest.mark.parametrize("given", ["", "torch", "jax"])
def test_the_mean_over_works_is_of_what_the_rows_show(given: str) -> None:
    """Against the fastest, unless another baseline is given, whatever the order of the request."""
    run = run_of(("torch", "jax"), batches=(4, 8))
    for process in run.processes:
        if process.contestant == "jax":
            scale_times(process, 1 / 4)
    results = results_of(run, baseline=given)
    question = question_of("memory<1GB", "")
    assert question is not None
    [mean] = decide(results, question).means
    rows = [row for row in results.rows if row.contestant == mean.contestant and row.ratio is not None]
    assert {row.baseline for row in rows} == {mean.baseline} == {given or results.rows[0].contestant}
    shown = math.prod(row.ratio.value for row in rows if row.ratio is not None) ** (1 / len(rows))
    assert mean.ratio == pytest.approx(shown, rel=0.01)


def test_works_that_disagree_show_no_difference() -> None:
    """Twice as quick on the one, twice as slow on the other."""
    run = run_of(("torch", "jax"), batches=(4, 8))
    for process in run.processes:
        if process.contestant == "jax" and run.plan.work_with(process.work_id).batch == 8:
            scale_times(process, 1 / 4)
    found = decision(run, use="research")
    assert sorted(found.recommended) == ["jax", "torch"]
    assert found.means[0].ratio == pytest.approx(1, rel=0.01)


def test_a_race_to_a_score_claims_nothing_on_calls_from_the_verdict_on_the_score() -> None:
    """Their steps take the same time, and one of them needs three times as many."""
    plan = msgspec.structs.replace(planned(contestants=Contestants("torch,jax")), to_score=0.9)
    processes = []
    for block in plan.blocks:
        for place in block.order:
            name = plan.contestants[place].text
            process = a_process(block.number, name, 1e6, plan.works[block.work])
            steps = 100 if name == "torch" else 300
            process.learning = LearningCurve(0.9, (Evaluation(steps, steps * 1e-3, 0.95, 0.1),))
            processes.append(process)
    results = results_of(Run(plan, processes, {}, {}))
    [found] = [each.comparisons for each in results.work_results]
    assert {(each.metric, each.verdict) for each in found} <= {
        (TIME_TO_SCORE, Verdict.FASTER),
        (TIME_TO_SCORE, Verdict.SLOWER),
    }
    assert not evidence_of(results)("torch", "jax", LATENCY).is_shown


def test_a_crash_of_all_leaves_nothing_to_recommend() -> None:
    run = a_run()
    for process in run.processes:
        crashed(process)
    found = decision(run, "memory<4GB", "cloud")
    assert found.recommended == []
    assert {each.qualifies for each in found.judged} == {"no"}


def test_an_unknown_use_is_refused() -> None:
    with pytest.raises(InvalidRequest) as error:
        use_named("clod")
    assert error.value.code == "E_USE"
    assert "cloud" in str(error.value)


NAMES = ("a", "b", "c")
statuses = st.fixed_dictionaries({name: st.sampled_from(["yes", "no", "unknown"]) for name in NAMES})
differences = st.tuples(st.floats(0.1, 10), st.booleans())


@given(statuses, st.lists(differences, min_size=12, max_size=12), st.sampled_from(ALL_USES))
def test_only_what_qualifies_is_recommended_and_only_what_is_shown_is_claimed(
    qualify: dict[str, Status], drawn: list[tuple[float, bool]], use: str
) -> None:
    columns = [weight.column for weight in USES[use].weights]
    pairs = list(itertools.combinations(NAMES, 2))
    table = {
        (pair, column): drawn[place % len(drawn)]
        for place, (pair, column) in enumerate(itertools.product(pairs, columns))
    }

    def evidence(a: str, b: str, weight: Weight) -> Difference:
        pair = (a, b) if (a, b) in pairs else (b, a)
        ratio, shown = table[pair, weight.column]
        return Difference(ratio if pair == (a, b) else 1 / ratio, shown, "drawn")

    found = recommend(qualify, USES[use], evidence, [])
    assert all(qualify[name] == "yes" for name in found.recommended)
    eligible = [name for name in NAMES if qualify[name] == "yes"]
    if not any(shown for _, shown in drawn):
        assert sorted(found.recommended) == sorted(eligible)
    for name in eligible:
        lost = [other for other in eligible if other != name and _score(evidence, other, name, use) < -1e-9]
        assert (name in found.recommended) == (not lost)


def _score(evidence, a: str, b: str, use: str) -> float:  # type: ignore[no-untyped-def]
    total = 0.0
    for weight in USES[use].weights:
        difference = evidence(a, b, weight)
        if difference.is_shown:
            total += (1 if weight.better == "lower" else -1) * weight.weight * math.log(difference.ratio)
    return total


def test_the_decision_survives_json() -> None:
    found = decision(a_run(), "memory<4GB", "cloud")
    assert msgspec.json.decode(msgspec.json.encode(found), type=Decision) == found


POINTS = [
    Point("torch", "fp32", 10.0, 2e-7, qualified=True),
    Point("jax", "fp32", 12.0, 1e-7, qualified=True),
    Point("torch", "bf16", 6.0, 5e-3, qualified=True),
    Point("jax", "bf16", 7.0, 6e-3, qualified=True),
    Point("onnxruntime", "int8", 3.0, 3e-2, qualified=True),
    Point("litert", "int8", 2.0, 4e-1, qualified=False),
]


def test_what_is_slower_and_less_exact_is_not_on_the_frontier() -> None:
    found = {(each.contestant, each.precision) for each in with_frontier(POINTS) if each.on_frontier}
    assert found == {("torch", "fp32"), ("torch", "bf16"), ("onnxruntime", "int8")}


def test_errors_of_fp32_count_as_equal() -> None:
    """jax is off by half as much as torch in fp32, which is rounding in another order."""
    assert not with_frontier(POINTS)[1].on_frontier


def test_what_is_not_ranked_neither_is_on_the_frontier_nor_keeps_others_from_it() -> None:
    assert not with_frontier(POINTS)[5].on_frontier
    assert with_frontier(POINTS)[4].on_frontier

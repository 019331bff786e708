"""The ratios of two runs: which of them a rerun refutes, whatever the machine did to the times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import output
from fairlap.history.between_runs import compare_saved_runs
from fairlap.history.ratios_between_runs import Outcome, RatiosCompared, compare_ratios, outcome_of
from fairlap.history.text import ratios_text
from fairlap.race.run import Run
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import results_of
from fairlap.store.runs.run_file import save_run
from fairlap.verdict import Change, Verdict
from saved_runs import MACHINE, saved_run

FASTER, INCONCLUSIVE = Verdict.FASTER, Verdict.INCONCLUSIVE
EQUAL = {"jax": 1e6, "torch": 1.2e6}


def ratios(before: Run, after: Run) -> tuple[RatiosCompared, ...]:
    return compare_ratios(compare_saved_runs(before, after), results_of(before), results_of(after))


def outcomes(before: Run, after: Run) -> list[tuple[str, Outcome]]:
    return [(ratio.contestants[1], ratio.outcome) for each in ratios(before, after) for ratio in each.ratios]


@pytest.mark.parametrize(
    ("before", "after", "verdicts", "outcome"),
    [
        (Estimate(1.045, 1.028, 1.069), Estimate(1.012, 1.007, 1.018), (FASTER, FASTER), "refuted"),
        (Estimate(1.012, 1.007, 1.018), Estimate(1.045, 1.028, 1.069), (FASTER, FASTER), "refuted"),
        # The interval after excludes the ratio before, which is not known exactly either.
        (Estimate(1.045, 1.010, 1.069), Estimate(1.012, 1.007, 1.018), (FASTER, FASTER), "holds"),
        (Estimate(1.045, 1.018, 1.069), Estimate(1.012, 1.007, 1.018), (FASTER, FASTER), "holds"),
        (Estimate(1.01, 0.98, 1.04), Estimate(1.012, 1.007, 1.018), (INCONCLUSIVE, FASTER), "undecided"),
        (Estimate(1.012, 1.007, 1.018), Estimate(1.01, 0.98, 1.04), (FASTER, INCONCLUSIVE), "undecided"),
        (Estimate(1.2, 1.1, 1.3), Estimate(1.0, 0.95, 1.05), (FASTER, INCONCLUSIVE), "refuted"),
        (Estimate(1.2, 1.1, 1.3), Estimate(1.0), (FASTER, FASTER), "undecided"),
        (Estimate(1.2, 1.1, 1.3), None, (FASTER,), "undecided"),
    ],
)
def test_a_ratio_is_refuted_where_the_intervals_have_no_value_in_common(
    before: Estimate, after: Estimate | None, verdicts: tuple[Verdict, ...], outcome: Outcome
) -> None:
    assert outcome_of(before, after, verdicts) == outcome


def test_a_machine_that_slows_everything_leaves_the_ratios_as_they_were() -> None:
    before, after = saved_run(EQUAL), saved_run({"jax": 1.5e6, "torch": 1.8e6}, seed=1)
    assert {each.regression.change for each in compare_saved_runs(before, after).differences} == {Change.SLOWER}
    [found] = ratios(before, after)
    [ratio] = found.ratios
    assert (ratio.contestants, ratio.baselines, ratio.outcome) == (("torch", "torch"), ("jax", "jax"), "holds")
    assert found.moved_alike


def test_ratios_and_intervals_are_those_of_the_rows() -> None:
    before, after = saved_run(EQUAL), saved_run(EQUAL, seed=1)
    [[ratio]] = [each.ratios for each in ratios(before, after)]
    rows = [next(row for row in results_of(run).rows if row.contestant == "torch") for run in (before, after)]
    assert [ratio.before, ratio.after] == [row.ratio for row in rows]


def test_the_ratio_of_one_contestant_that_became_slower_is_refuted_and_the_other_one_holds() -> None:
    before = saved_run({**EQUAL, "tvm": 2e6})
    after = saved_run({"jax": 1e6, "torch": 1.4e6, "tvm": 2e6}, seed=1)
    assert outcomes(before, after) == [("torch", "refuted"), ("tvm", "holds")]
    assert not ratios(before, after)[0].moved_alike


def test_where_another_contestant_wins_the_ratio_is_still_to_the_winner_of_the_first_run() -> None:
    before, after = saved_run(EQUAL), saved_run({"jax": 1.2e6, "torch": 1e6}, seed=1)
    [[ratio]] = [each.ratios for each in ratios(before, after)]
    assert (ratio.baselines, ratio.outcome) == (("jax", "jax"), "refuted")
    assert ratio.after is not None
    assert ratio.after.value == pytest.approx(1 / 1.2, rel=0.01)


def test_a_ratio_to_a_new_version_changed_and_no_claim_about_it_was_made() -> None:
    before = saved_run({"jax": 1e6, "torch==1": 1.2e6}, versions={"torch==1": "1"})
    after = saved_run({"jax": 1e6, "torch==2": 1.4e6}, versions={"torch==2": "2"}, seed=1)
    assert outcomes(before, after) == [("torch==2", "changed")]
    assert "torch==1 -> torch==2, times as long as jax: 1.1" in ratios_text(ratios(before, after))


def test_another_processor_refutes_nothing() -> None:
    after = saved_run({"jax": 1e6, "torch": 1.4e6}, machine={**MACHINE, "cpu model": "two"})
    assert outcomes(saved_run(EQUAL), after) == [("torch", "not comparable")]


def test_runs_with_one_contestant_in_common_have_no_ratio_in_common() -> None:
    assert ratios(saved_run(EQUAL), saved_run({"torch": 1.2e6, "tvm": 1e6})) == ()
    assert ratios_text(()) == ""


def test_without_the_winner_the_ratios_of_the_others_to_the_next_are_compared() -> None:
    before, after = saved_run({**EQUAL, "tvm": 2e6}), saved_run({"torch": 1.2e6, "tvm": 2e6}, seed=1)
    assert outcomes(before, after) == [("tvm", "holds")]
    assert ratios(before, after)[0].ratios[0].baselines == ("torch", "torch")


def test_diff_begins_with_the_ratios(tmp_path: Path) -> None:
    files = tmp_path / "before.json", tmp_path / "after.json"
    save_run(files[0], saved_run(EQUAL))
    save_run(files[1], saved_run({"jax": 0.7e6, "torch": 0.9e6}, seed=1))
    first, second = output("diff", *files).splitlines()[:2]
    assert "torch, times as long as jax: 1.1" in first
    assert "refuted" in first
    assert "jax (1.0): faster: 0.6" in second
    [ratio] = json.loads(output("diff", *files, "--json"))["ratios"]
    assert ratio["outcome"] == "refuted"
    assert ratio["after"]["low"] > ratio["before"]["high"]

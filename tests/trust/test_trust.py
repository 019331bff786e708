"""The experiments of the trust suite, simulated, recorded or raced, at a size for every change.

The stated 10,000 trials run in `python -m tests.trust.suite`, or here with FAIRLAP_TRUST_FULL=1; `make trust-history`
runs the whole of what is known of changes over time.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from fairlap.history.change_points import change_points
from fairlap.verdict.false_positive_rate import false_positives
from thorough import thorough_where

from . import searches
from .bounds import CONTESTANTS, EXPECTED, raced
from .figure import Figure, allowed_share, needed_share, seeded
from .history.experiments import BUSY, causes_right, false_alarms, found_within_three_runs
from .history.recording import recorded
from .identical_pairs import SHARING, RacedPairs, rate_of
from .queue_theory import (
    Kind,
    latency_quantile,
    mean_latency,
    share_waiting_at_most,
    variance_of_mean,
    variance_per_request,
    waits,
)
from .rejected_rules import rejected_rules
from .suite import EXPERIMENTS, KNOWN_UNMET, as_markdown, main

FULL = os.environ.get("FAIRLAP_TRUST_FULL") == "1"


LONG = [name for name in EXPERIMENTS if name.startswith(("9 with looks", "family intervals", "4 adaptive stopping"))]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", thorough_where(LONG.__contains__, EXPERIMENTS))
def test_every_figure_of_the_experiment_meets_its_threshold(name: str) -> None:
    experiment, full_trials, small_trials = EXPERIMENTS[name]
    figures = experiment(full_trials if FULL else small_trials)
    assert figures
    unmet = [figure for figure in figures if not figure.passed]
    assert [str(figure) for figure in unmet if (figure.experiment, figure.case) not in KNOWN_UNMET] == []


@pytest.mark.parametrize(("trials", "allowed"), [(10_000, 551), (400, 31), (200, 18)])
def test_the_allowed_shares_are_the_stated_ones(trials: int, allowed: int) -> None:
    assert allowed_share(trials) == allowed / trials
    assert Figure("x", "", "", allowed, trials, high=allowed_share(trials)).passed
    assert not Figure("x", "", "", allowed + 1, trials, high=allowed_share(trials)).passed


def test_the_rules_that_were_rejected_would_be_caught_by_the_same_threshold() -> None:
    for figure in rejected_rules(1000):
        assert figure.rate > allowed_share(1000), figure.what


def test_the_suite_writes_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missed = Figure("9", "a case", "found", 3, 4, low=0.8)
    monkeypatch.setattr(
        "tests.trust.suite.EXPERIMENTS" if __name__.startswith("tests.") else "trust.suite.EXPERIMENTS",
        {"one": (lambda trials: [Figure("1", "c", "w", 1, trials, high=0.5), missed], 100, 10)},
    )
    assert main(["--out", str(tmp_path), "--small"]) == 1
    rows = json.loads((tmp_path / "trust.json").read_text())
    assert [(row["trials"], row["passed"]) for row in rows] == [(10, True), (4, False)]
    table = (tmp_path / "trust.md").read_text()
    assert "| 9 | a case | found | 3 / 4 | 75.00 % | at least 80.00 % | **no** |" in table
    assert as_markdown([missed]).count("\n") == 3


@pytest.mark.thorough
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="the sizes of the caches are read from Linux")
def test_a_triad_is_bound_by_memory_a_product_by_arithmetic_and_an_empty_call_by_its_overhead() -> None:
    for framework in CONTESTANTS.split(","):
        pytest.importorskip(framework)
    rows = list(raced(0, 1, 0.05))
    assert {(row.workload, row.contestant): row.bound for row in rows} == {
        (model, contestant): bound for model, bound in EXPECTED.items() for contestant in CONTESTANTS.split(",")
    }


HISTORIES = 12
_MOST_FALSE = 0.001


def test_recorded_noise_is_of_three_contestants_with_as_many_runs_each() -> None:
    noise = recorded()
    assert len(noise) == 3
    assert {each.size for each in noise.values()} == {next(iter(noise.values())).size}
    assert min(each.min() for each in noise.values()) > 0


def test_at_most_one_change_in_a_thousand_points_is_claimed_where_nothing_changed() -> None:
    claims = false_alarms(change_points, seeded("short"), HISTORIES, BUSY, controlled=True)
    assert claims.points >= 3_000
    assert claims.places <= _MOST_FALSE * claims.points


def test_a_step_of_five_percent_is_found_within_three_runs() -> None:
    found, trials = found_within_three_runs(change_points, seeded("short"), HISTORIES, BUSY, 0.05, controlled=True)
    assert found / trials >= needed_share(trials, 0.9)


def test_a_step_has_its_cause() -> None:
    for of_machine in (False, True):
        right = causes_right(seeded("short"), HISTORIES, BUSY, 0.10, of_machine=of_machine)
        assert right / HISTORIES >= needed_share(HISTORIES, 0.9)


def race(claims: int, contestants: int) -> RacedPairs:
    return RacedPairs("latency", "torch", 1, contestants, 6, claims, 0, 1.0)


def test_races_of_two_have_the_exact_interval_of_independent_pairs() -> None:
    rate = rate_of([race(1, 2)] * 3 + [race(0, 2)] * 57)
    exact = false_positives(3, 60)
    assert rate.claims == 3
    assert (rate.low, rate.high) == pytest.approx((exact.low, exact.high), rel=0.1)


def test_claims_that_come_in_one_race_alone_widen_the_interval() -> None:
    spread, together = [race(1, 6)] * 4, [race(4, 6), *[race(0, 6)] * 3]
    assert rate_of(spread).share == rate_of(together).share
    assert rate_of(spread).worth == int(60 / (1 + 8 * SHARING))
    assert rate_of(together).worth < rate_of(spread).worth
    assert rate_of(together).high > rate_of(spread).high


def test_pairs_that_share_blocks_are_worth_fewer_even_without_a_claim() -> None:
    rate = rate_of([race(0, 12)])
    assert (rate.pairs, rate.worth, rate.low) == (66, 16, 0.0)
    assert rate.high > 0.2


def test_a_rule_that_errs_in_a_third_of_pairs_fails() -> None:
    assert not rate_of([race(1, 2)] * 20 + [race(0, 2)] * 40).passed
    assert rate_of([race(1, 2)] * 2 + [race(0, 2)] * 58).passed


COUNT = 400_000


def latencies(kind: Kind, load: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    random = np.random.default_rng(10)
    due = np.cumsum(random.exponential(1 / load, COUNT))
    service = np.ones(COUNT) if kind == "constant" else random.exponential(1.0, COUNT)
    return waits(due, service) + service


@pytest.mark.parametrize("load", [0.3, 0.6])
@pytest.mark.parametrize("kind", ["constant", "exponential"])
def test_the_mean_and_the_p99_of_the_recursion_are_those_of_the_formulae(kind: Kind, load: float) -> None:
    latency = latencies(kind, load)
    assert latency.mean() == pytest.approx(mean_latency(kind, load), rel=0.02)
    assert np.quantile(latency, 0.99) == pytest.approx(latency_quantile(kind, load, 0.99), rel=0.03)


def test_the_recursion_starts_each_request_when_it_is_due_or_the_one_before_is_complete() -> None:
    due = np.array([0.0, 1.0, 5.0, 5.5])
    assert waits(due, np.array([3.0, 1.0, 2.0, 1.0])).tolist() == [0, 2, 0, 1.5]


def test_without_a_wait_erlangs_distribution_has_the_share_that_finds_the_server_free() -> None:
    assert share_waiting_at_most(0, 0.9) == pytest.approx(0.1)


def test_erlangs_distribution_is_exact_far_in_its_tail() -> None:
    # The tail falls by the factor exp(-theta), where load * (exp(theta) - 1) = theta.
    tails = [1 - share_waiting_at_most(wait, 0.9) for wait in (40.0, 41.0)]
    theta = -np.log(tails[1] / tails[0])
    assert 0.9 * (np.exp(theta) - 1) == pytest.approx(theta, rel=1e-6)


def test_the_variance_of_the_mean_latency_is_that_of_daley() -> None:
    found = variance_of_mean(latencies("exponential", 0.6)) * COUNT
    assert found == pytest.approx(variance_per_request("exponential", 0.6), rel=0.7)  # 20 batches: a factor of 1.6


@pytest.mark.slow
def test_searches_that_judge_hundreds_of_changes_keep_the_error_rate_and_find_the_gain() -> None:
    figures = searches.run(small=True)
    assert [str(each) for each in figures if not each.passed] == []
    alone = next(each for each in figures if each.what == "tries kept at 5 % each")
    assert alone.rate * searches.TRIES > 5  # false winners in a search without a ledger: the simulation can see them

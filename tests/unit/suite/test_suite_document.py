"""One error rate over all works of a suite: corrected p values by hand, and equal benchmarks that raise no alarm."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from fairlap import verdict
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import load_plan
from fairlap.results.results import results_of
from fairlap.suite.suite_document import over_suite, works_of
from fairlap.verdict.exact_tests.signed_rank import p_two_sided, walsh_averages
from fairlap.verdict.false_positive_rate import false_positives
from saved_runs import saved_run

BENCHMARKS = 100


@pytest.mark.parametrize(("blocks", "works", "claimed"), [(6, 1, True), (6, 2, False), (8, 10, False), (9, 10, True)])
def test_blocks_of_one_sign_have_the_p_value_of_a_hand_computation(blocks: int, works: int, claimed: bool) -> None:
    """All of n signs alike has a chance of 2 / 2^n; over m works it counts m times, and 5 % are claimed."""
    run = saved_run({"base": 1e6, "change": 1.3e6}, blocks=blocks, spread=0.001)
    run.plan = msgspec.structs.replace(run.plan, alpha=verdict.ERROR_RATE / works)
    [work] = works_of(results_of(run, baseline="base"))
    [change] = [each for each in work.contestants if each.contestant == "change"]
    by_hand = 2 / 2**blocks * works
    assert change.p == pytest.approx(by_hand)
    assert (by_hand <= 0.05) is claimed
    assert change.verdict == ("slower" if claimed else "inconclusive")


def test_a_corrected_p_value_is_at_most_one() -> None:
    assert over_suite(0.4, 0.05 / 10) == 1.0
    assert over_suite(0.001, 0.05 / 10) == pytest.approx(0.01)
    assert over_suite(0.01, 0.05) == 0.01


def test_a_hundred_equal_benchmarks_raise_an_alarm_in_at_most_one_suite_of_twenty() -> None:
    """In 600 suites, by the exact binomial bound; uncorrected nearly every suite would raise one."""
    rng, suites = np.random.default_rng(11), 600
    noise = rng.standard_t(3, (suites, BENCHMARKS, 16)) * 0.02  # heavy tails, a third of the blocks disturbed
    noise *= np.where(rng.random(noise.shape) < 0.3, 5.0, 1.0)
    p = p_two_sided(walsh_averages(noise))
    level = verdict.ERROR_RATE / BENCHMARKS
    alarms = int((np.minimum(1.0, p * verdict.ERROR_RATE / level) <= 0.05).any(axis=1).sum())
    assert alarms <= false_positives(alarms, suites).allowed
    assert (p <= 0.05).any(axis=1).mean() > 0.9


@pytest.mark.thorough
def test_a_hundred_equal_benchmarks_that_race_until_decided_raise_no_more_alarms_than_stated() -> None:
    """In 40 suites; the bound is exceeded in 1 % of such tests where the rate is the 5 % that are stated."""
    rng, level, suites = np.random.default_rng(12), verdict.ERROR_RATE / BENCHMARKS, 40
    alarms = 0
    for _ in range(suites):
        tables = []
        for _ in range(BENCHMARKS):
            logs = np.log(1e6) + rng.normal(0, 0.05, (14, 1)) + rng.standard_t(3, (14, 2)) * 0.02
            figures = {name: verdict.Figures("wall", np.exp(logs[:, i])) for i, name in enumerate(("base", "change"))}
            tables.append(verdict.block_table(figures, metric=verdict.LATENCY, workload="w"))
        alarms += any(_differs(table, level) for table in tables)
    assert alarms <= false_positives(alarms, suites).allowed


def _differs(table: verdict.BlockTable, alpha: float) -> bool:
    """As a race ends: at the first look that decides it, or blind at its last block."""
    design = verdict.design_so_far([table], alpha=alpha, until_decided=True)
    [found] = verdict.judge([table], alpha=alpha, design=design)
    return found.verdict in (verdict.Verdict.FASTER, verdict.Verdict.SLOWER)


@pytest.mark.parametrize("alpha", [0.9, 0.0, -1.0])
def test_a_plan_cannot_claim_more_than_the_stated_error_rate(alpha: float, tmp_path: Path) -> None:
    plan = msgspec.to_builtins(saved_run({"base": 1e6, "change": 1e6}).plan)
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode({**plan, "alpha": alpha}))
    with pytest.raises(InvalidRequest):
        load_plan(tmp_path / "plan.json")


@pytest.mark.parametrize("works", range(1, 50))
def test_the_plan_of_a_race_that_has_all_works_of_its_suite_is_read_again(works: int) -> None:
    """0.05 * 3 / 3 is more than 0.05, which a plan that is read may not have."""
    plan = saved_run({"base": 1e6, "change": 1e6}).plan
    plan = msgspec.structs.replace(plan, works=plan.works * works)
    shared = plan.sharing_its_errors(works)
    assert shared.alpha == verdict.ERROR_RATE
    assert msgspec.json.decode(msgspec.json.encode(shared), type=Plan).alpha == verdict.ERROR_RATE
    assert plan.sharing_its_errors(2 * works).alpha == pytest.approx(verdict.ERROR_RATE / 2)

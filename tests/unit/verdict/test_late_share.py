"""The sequential test of the share of late requests errs as often as it states, and saves most of the requests."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict import BadOption, LateShareTest

_REQUESTS = 6000


def decisions(share: float, bound: float, trials: int = 1500) -> tuple[float, float, float]:
    """Of independent requests: the shares of trials that met and missed, and the mean requests until then."""
    rng = np.random.default_rng(7)
    missed_at, met_at = LateShareTest(bound, clustering=1.0).limits(_REQUESTS)
    late = np.cumsum(rng.random((trials, _REQUESTS)) < share, axis=1)
    is_missed, is_met = late >= missed_at[1:], late <= met_at[1:]
    ends = (is_missed | is_met).argmax(axis=1)
    rows = np.arange(trials)
    return is_met[rows, ends].mean(), is_missed[rows, ends].mean(), float(ends.mean() + 1)


@pytest.mark.parametrize("bound", [0.01, 0.1])
def test_a_share_of_half_the_odds_is_called_missed_at_most_as_often_as_stated(bound: float) -> None:
    odds = bound / (1 - bound) / 2
    met, missed, requests = decisions(odds / (1 + odds), bound)
    assert missed <= LateShareTest(bound).error
    assert met >= 0.9
    assert requests < 10 / bound


@pytest.mark.parametrize("bound", [0.01, 0.1])
def test_a_share_of_twice_the_odds_is_called_met_at_most_as_often_as_stated(bound: float) -> None:
    odds = bound / (1 - bound) * 2
    met, missed, requests = decisions(odds / (1 + odds), bound)
    assert met <= LateShareTest(bound).error
    assert missed >= 0.9
    assert requests < 10 / bound


def test_without_a_late_request_the_bound_is_met_after_walds_number_of_requests() -> None:
    _, met_at = LateShareTest(0.01, clustering=1.0).limits(1000)
    # ln 19 over the logarithm of (1 - 1/199) / (1 - 2/101), by hand
    assert int(np.argmax(met_at >= 0)) == 197
    assert met_at[0] == -1


def test_no_bound_is_missed_before_one_request_may_be_late() -> None:
    test = LateShareTest(0.01, clustering=1.0)
    missed_at, _ = test.limits(200)
    assert test.fewest == 100
    assert all(missed_at[number] > number for number in range(100))
    assert missed_at[100] == 4


def test_a_trial_without_a_decision_is_judged_by_its_share() -> None:
    test = LateShareTest(0.1)
    assert test.outcome(10, 100) == "met"
    assert test.outcome(11, 100) == "missed"


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_only_a_share_between_none_and_all_can_be_tested(share: float) -> None:
    with pytest.raises(BadOption):
        LateShareTest(share)


def test_late_requests_that_come_in_bursts_need_more_evidence() -> None:
    alone, in_bursts = (LateShareTest(0.01, clustering=clustering) for clustering in (1.0, 3.0))
    assert int(np.argmax(in_bursts.limits(2000)[1] >= 0)) == pytest.approx(3 * 197, abs=3)
    assert (in_bursts.limits(2000)[0] >= alone.limits(2000)[0]).all()

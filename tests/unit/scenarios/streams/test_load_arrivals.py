"""Requests come as theory has it: at random, evenly and in bursts, and from users who think between answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.fields.streams import Bounds
from fairlap.scenarios.streams.figures import Tokens, figures_of
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.streams_found import StreamFigures
from fairlap.scenarios.streams.workload.arrivals import Arrivals, arrivals_named
from fairlap.scenarios.streams.workload.lengths import Lengths, lengths_named
from fairlap.scenarios.streams.workload.sessions import Source
from scipy import optimize, stats  # type: ignore[import-untyped,unused-ignore]
from thinking_users import one_slot, repairman_per_s

REQUESTS, RATE = 200_000, 50.0
ONE = Lengths(1, 1)


@pytest.mark.parametrize("cv", [0.5, 1.0, 2.0])
def test_gaps_of_bursts_have_the_gamma_distribution_and_exactly_the_rate(cv: float) -> None:
    due_ns = arrivals_named(f"gamma:cv={cv:g}").due_ns(REQUESTS, RATE, 1)
    assert (np.diff(due_ns) >= 0).all()
    assert 0 <= due_ns[0] < due_ns[-1] <= 1e9 * REQUESTS / RATE
    gaps_s = np.diff(due_ns) / 1e9
    assert gaps_s.mean() == pytest.approx(1 / RATE, rel=0.001)
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(cv, rel=0.02)
    theory = stats.gamma(1 / cv**2, scale=cv**2 / RATE)
    assert stats.kstest(gaps_s[::10], theory.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("cv", "other"), [(2.0, 1.0), (0.5, 1.0)])
def test_another_coefficient_of_variation_is_told_apart(cv: float, other: float) -> None:
    gaps_s = np.diff(Arrivals("gamma", cv).due_ns(REQUESTS, RATE, 1)) / 1e9
    theory = stats.gamma(1 / other**2, scale=other**2 / RATE)
    assert stats.kstest(gaps_s[::10], theory.cdf).pvalue < 1e-9


def test_constant_arrivals_are_equally_far_apart_and_random_ones_are_poisson() -> None:
    assert np.diff(arrivals_named("constant").due_ns(100, RATE, 1)) == pytest.approx(1e9 / RATE)
    gaps_s = np.diff(arrivals_named("poisson").due_ns(REQUESTS, RATE, 1)) / 1e9
    assert stats.kstest(gaps_s[::10], stats.expon(scale=1 / RATE).cdf).pvalue > 1e-3


@pytest.mark.parametrize("cv", [0.5, 2.0])
def test_a_queue_fed_with_bursts_waits_as_long_as_theory_says(cv: float) -> None:
    """Of GI/M/1, the mean wait is r S / (1 - r), where r is the transform of the gaps at (1 - r) / S."""
    service_s = 0.7 / RATE
    due_s = Arrivals("gamma", cv).due_ns(REQUESTS, RATE, 3) / 1e9
    took_s = np.random.default_rng(4).exponential(service_s, REQUESTS)
    ends_s = np.cumsum(took_s) + np.maximum.accumulate(due_s - np.concatenate([[0.0], np.cumsum(took_s)[:-1]]))
    shape = 1 / cv**2
    found = optimize.brentq(lambda r: (1 + (1 - r) / (service_s * shape * RATE)) ** -shape - r, 1e-9, 1 - 1e-6)
    assert (ends_s - took_s - due_s).mean() == pytest.approx(found * service_s / (1 - found), rel=0.05)


@pytest.mark.parametrize("text", ["", "gamma", "gamma:cv=0", "gamma:cv=-1", "gamma:cv=11", "gamma:cv=nan", "Poisson"])
def test_what_is_no_kind_of_arrivals_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        arrivals_named(text)
    assert raised.value.code == "E_LOAD"


def source(*prompts: Prompt, lengths: Lengths | None = ONE) -> Source:
    return Source(prompts or (Prompt(prompt="a"),), None, lengths, 1.0, "nonce")


def test_lengths_are_drawn_from_their_distribution() -> None:
    even = lengths_named("16-256").draw(REQUESTS, 1)
    assert (even.min(), even.max()) == (16, 256)
    assert even.mean() == pytest.approx(136, rel=0.01)
    drawn = lengths_named("lognormal:mean=200:cv=1").draw(REQUESTS, 1)
    assert drawn.mean() == pytest.approx(200, rel=0.01)
    assert drawn.std() / drawn.mean() == pytest.approx(1, rel=0.02)
    assert (
        stats.kstest(np.log(drawn[::20]), stats.norm(math.log(200) - math.log(2) / 2, math.log(2) ** 0.5).cdf)[1] > 1e-3
    )
    assert set(lengths_named("64").draw(100, 1).tolist()) == {64}


def test_each_answer_has_the_length_of_its_line_unless_lengths_are_drawn() -> None:
    prompts = (Prompt(prompt="a", tokens=3), Prompt(prompt="b", tokens=5))
    assert {each.number: each.tokens for each in source(*prompts, lengths=None).sessions(6, 1)} == {0: (3,), 1: (5,)}
    drawn = source(*prompts, lengths=Lengths(7, 9)).sessions(50, 1)
    assert {tokens for each in drawn for tokens in each.tokens} == {7, 8, 9}


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "9-3", "0-9", "1000000", "lognormal:mean=0:cv=1", "²"])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        lengths_named(text)
    assert raised.value.code == "E_LOAD"


def by_users(users: int, think_s: float, service_s: float, requests: int, seed: int) -> tuple[StreamFigures, float]:
    sessions = source().sessions(requests, seed, think_s=think_s, users=True)
    service_ns = np.random.default_rng(seed).exponential(1e9 * service_s, requests)
    served = one_slot(sessions, users, service_ns)
    return figures_of(served, Bounds(first_token_s=1e9)), float(Tokens.of(served).end_to_end_ns.mean()) / 1e9


@pytest.mark.slow_but("4")
@pytest.mark.parametrize("users", [1, 4, 12])
def test_users_who_think_get_what_the_machine_repairman_model_says(users: int) -> None:
    think_s, service_s = 0.08, 0.01
    found, answer_s = by_users(users, think_s, service_s, 30_000, 7)
    per_s = repairman_per_s(users, think_s, service_s)
    assert found.requests_per_s == pytest.approx(per_s, rel=0.02)
    assert found.tokens_per_s == pytest.approx(per_s, rel=0.02)
    assert found.goodput_per_s == pytest.approx(per_s, rel=0.02)
    assert answer_s == pytest.approx(users / per_s - think_s, rel=0.03)  # Little's law


def test_the_end_of_a_short_load_when_users_have_left_is_not_counted() -> None:
    """Of five requests for each user, the last ones come while fewer and fewer users are left."""
    users, think_s, service_s = 12, 0.08, 0.01
    found = [by_users(users, think_s, service_s, 5 * users, seed)[0] for seed in range(150)]
    per_s = repairman_per_s(users, think_s, service_s)
    assert np.mean([each.requests_per_s for each in found]) == pytest.approx(per_s, rel=0.05)


def test_thinking_is_exponential_and_the_first_request_of_an_arrival_comes_at_once() -> None:
    conversation = Prompt(turns=("a", "b", "c"))
    sessions = source(conversation).sessions(20_000, 5, think_s=20.0, users=True)
    thinks_s = np.array([each.thinks_ns for each in sessions]) / 1e9
    assert thinks_s.shape == (20_000, 3)
    assert stats.kstest(thinks_s[::4].ravel(), stats.expon(scale=20.0).cdf).pvalue > 1e-3
    arriving = source(conversation).sessions(50, 5, think_s=20.0)
    assert {each.thinks_ns[0] for each in arriving} == {0.0}
    assert min(min(each.thinks_ns[1:]) for each in arriving) > 0

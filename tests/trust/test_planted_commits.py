"""Planted steps are named as often as stated, at a size for every change; `make trust-bisect` runs the whole."""

from __future__ import annotations

import pytest

from .planted_commits import CASES, Case, halved, planted, searches

SEEDS = range(20)
OF_CASE = {case.name: case for case in CASES}


@pytest.mark.slow_but("fifth")
@pytest.mark.parametrize(
    ("case", "fewest"),
    [
        (CASES[0], 19),
        (OF_CASE["a step of 3 %, a fifth does not build"], 18),
        (OF_CASE["a step of 5 %, a speed-up of 2 % elsewhere"], 18),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_planted_step_is_named_and_hardly_ever_another_commit(case: Case, fewest: int) -> None:
    found = searches(case, SEEDS)
    assert sum(each.named for each in found) >= fewest
    assert sum(each.claimed and not each.named for each in found) <= 1


def test_plain_bisection_misses_more_with_as_many_blocks() -> None:
    plain = [halved(planted(CASES[0], seed), 12) for seed in SEEDS]
    found = searches(CASES[0], SEEDS)
    assert sum(each.named for each in plain) < sum(each.named for each in found)

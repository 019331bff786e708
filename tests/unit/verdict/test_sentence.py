"""What a person reads."""

import re

import numpy as np
import pytest
from fairlap.verdict import (
    COMPILE_TIME,
    THROUGHPUT,
    Verdict,
    block_table,
    judge,
    modes_sentence,
    power,
    sentence,
    sentence_about_a,
)
from fairlap.verdict.metric import Metric
from fairlap.verdict.modes import Mode, Modes
from hypothesis import given
from hypothesis import strategies as st

STEPS = np.array([0.7, -0.3, 0.1, -0.9, 0.4, 0.2, -0.6, 0.8, -0.1, 0.5, -0.4, -0.5])


def said(log_ratio: float, spread: float, blocks: int = 12, margin: float = 0.02, **options: object) -> str:
    d = log_ratio + spread * STEPS[:blocks]
    table = block_table({"torch": np.exp(d), "jax": np.ones(blocks)}, **options)  # type: ignore[arg-type]
    return sentence(judge([table], margin=margin)[0])


def test_the_faster_one_comes_first_with_its_interval_and_what_such_a_run_finds() -> None:
    reach = "12 blocks; such a run finds 1.7 % four times in five"
    assert said(np.log(1.18), 0.03) == f"jax is 1.180 times as fast as torch [1.166, 1.194], {reach}"
    assert said(-np.log(1.18), 0.03) == f"torch is 1.180 times as fast as jax [1.166, 1.194], {reach}"


def test_a_difference_that_is_shown_is_never_said_to_be_one_that_would_not_have_shown() -> None:
    lucky = np.array([0.08, 0.09, 0.1, 0.11, 0.12, 0.2, 0.4, 0.9, 1.5])
    told = sentence(judge([block_table({"torch": np.exp(lucky), "jax": np.ones(lucky.size)})])[0])
    assert told.startswith("jax is ")
    assert "would not have shown" not in told


def test_a_sentence_about_the_first_keeps_it_first_when_it_is_slower() -> None:
    table = block_table({"torch": np.exp(np.log(2) + 0.03 * STEPS), "jax": np.ones(STEPS.size)})
    assert sentence_about_a(judge([table])[0]).startswith("torch is 0.50")


def test_a_throughput_twice_as_high_is_twice_as_fast() -> None:
    told = said(np.log(2), 0.2, metric=THROUGHPUT)
    assert told.startswith("torch is 2.00 times as fast as jax [1.85, 2.17], ")
    assert said(-np.log(2), 0.2, metric=THROUGHPUT).startswith("jax is 2.00 times as fast as torch [1.85, 2.17], ")


def test_what_is_not_a_speed_is_told_as_a_ratio_of_figures() -> None:
    told = said(np.log(2), 0.2, metric=COMPILE_TIME)
    assert told.startswith("compile time of jax is 0.500 times that of torch [0.462, 0.542], 12 blocks")
    more_is_better = Metric("accuracy", "%", better="higher", is_speed=False)
    told = said(np.log(2), 0.2, metric=more_is_better)
    assert told.startswith("accuracy of torch is 2.00 times that of jax [1.85, 2.17], 12 blocks")


def test_equivalence_is_told_with_the_interval_that_shows_it() -> None:
    assert said(0.001, 0.005) == ("jax and torch are equivalent within 2 %: 1.0010 [0.9993, 1.0025] at 90 %, 12 blocks")
    assert said(0.001, 0.005, margin=0.05).startswith("jax and torch are equivalent within 5 %: ")


def test_a_small_shown_difference_says_that_it_is_within_the_margin() -> None:
    assert ", which is within 2 %, 12 blocks;" in said(0.005, 0.002)
    assert "within" not in said(0.2, 0.002)


def test_an_inconclusive_comparison_says_what_is_known() -> None:
    assert said(0.03, 0.2) == (
        "inconclusive: jax is 1.03 times as fast as torch [0.95, 1.12], 12 blocks; "
        "differences under 12 % would not have shown; about 404 blocks would show 2 %"
    )


def test_a_share_above_one_is_told_without_an_exponent() -> None:
    assert "differences under 954 % would not have shown" in said(0.03, 4.1)


def test_when_no_sensible_number_of_blocks_would_do_it_says_so() -> None:
    assert said(0.03, 0.6).endswith("; over 500 blocks would be needed to show 2 %")


@pytest.mark.parametrize("seed", range(5))
def test_as_many_blocks_as_it_says_would_show_the_margin(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.07, 12)
    told = sentence(judge([block_table({"torch": np.exp(noise - noise.mean()), "jax": np.ones(12)})])[0])
    needed = re.search(r"about (\d+) blocks would show 2 %", told)
    assert needed, told
    assert power(np.log1p(0.02) / float(np.std(noise, ddof=1)), int(needed[1]), 0.05) > 0.8


def test_too_few_blocks_never_become_a_guess() -> None:
    assert said(0.5, 0.01, blocks=4) == (
        "inconclusive: 4 blocks cannot reach 5 %; 6 can; jax is 1.65 times as fast as torch in these 4 blocks"
    )


def test_evidence_from_one_process_is_labelled() -> None:
    assert ", 12 blocks within one process;" in said(0.5, 0.01, evidence="within one process")
    assert "within one process" not in said(0.5, 0.01)


def test_modes_under_a_ratio_are_never_passed_over() -> None:
    modes = np.where(np.arange(12) % 4 == 0, 0.9, 0.0) + 0.01 * STEPS
    told = sentence(judge([block_table({"torch": np.exp(2 + modes), "jax": np.exp(0.01 * STEPS[::-1])})])[0])
    assert told.startswith("jax is ")
    assert told.endswith("; processes of torch fall into 2 modes, so the ratio lies between theirs; read the modes")


def test_modes_are_listed_with_their_shares() -> None:
    modes = Modes((Mode(1.08, 0.25, (0,)), Mode(2.70412, 0.75, (1, 2, 3))))
    assert modes_sentence("torch", modes, "ms") == (
        "torch runs in 2 modes: 1.08 ms in 25 % of processes, 2.704 ms in 75 % of processes"
    )


@given(st.floats(-0.004, 0.004), st.floats(1e-7, 0.01))
def test_a_printed_bound_never_contradicts_the_verdict_beside_it(log_ratio: float, spread: float) -> None:
    d = log_ratio + spread * STEPS
    found = judge([block_table({"a": np.exp(d), "b": np.ones(12)})])[0]
    low, high = map(float, re.findall(r"\[([\d.]+), ([\d.]+)\]", sentence(found))[0])
    if found.verdict in (Verdict.FASTER, Verdict.SLOWER):
        assert low > 1
    elif found.verdict is Verdict.INCONCLUSIVE:
        assert low <= 1 <= high


def test_a_bound_that_would_round_to_one_gets_another_digit() -> None:
    # Thirteen Walsh averages are cut at each end; the shift puts the fourteenth just beyond 1.
    lowest = np.sort([(STEPS[i] + STEPS[j]) / 2 for i in range(12) for j in range(i, 12)])[13]
    assert said(0.0003 - 0.03 * lowest, 0.03).split("[")[1].startswith("1.0003, 1.0")
    assert said(0.0001 - 0.03 * lowest, 0.03).split("[")[1].startswith("1.0001, 1.0")
    assert said(0.00003 - 0.03 * lowest, 0.03).split("[")[1].startswith("1.00003, 1.0")
    assert said(-0.0003 - 0.03 * lowest, 0.03).split("[")[1].startswith("0.9997, 1.0")


@pytest.mark.parametrize(("spread", "digits"), [(1.0, 2), (0.1, 2), (0.02, 3), (0.002, 4), (0.0002, 5), (1e-9, 6)])
def test_digits_follow_the_width_of_the_interval(spread: float, digits: int) -> None:
    found = re.findall(r"\[\d+\.(\d+),", said(1.0, spread))
    assert len(found[0]) == digits

"""What a person reads."""

import re
from typing import Any

import numpy as np
import pytest
from fairlap.verdict import (
    COMPILE_TIME,
    THROUGHPUT,
    Comparison,
    ComparisonText,
    Verdict,
    block_table,
    judge,
    needed_blocks,
    power,
    sentence,
)
from fairlap.verdict.metric import Metric
from hypothesis import given
from hypothesis import strategies as st

STEPS = np.array([0.7, -0.3, 0.1, -0.9, 0.4, 0.2, -0.6, 0.8, -0.1, 0.5, -0.4, -0.5])


def compared(log_ratio: float, spread: float, blocks: int = 12, margin: float = 0.02, **options: Any) -> Comparison:
    d = log_ratio + spread * STEPS[:blocks]
    return judge([block_table({"torch": np.exp(d), "jax": np.ones(blocks)}, **options)], margin=margin)[0]


def text_of(log_ratio: float, spread: float, **options: Any) -> ComparisonText:
    return sentence(compared(log_ratio, spread, **options))


def test_the_faster_one_is_the_subject_and_the_parts_make_the_sentence() -> None:
    text = text_of(np.log(1.18), 0.03)
    assert (text.claim, text.interval) == ("jax is 1.180 times as fast as torch", "[1.166, 1.194]")
    assert text.details == "12 blocks; minimum detectable effect 1.7 % (80 % power)"
    assert str(text) == text.without_verdict() == f"{text.claim} {text.interval}, {text.details}"
    assert text_of(-np.log(1.18), 0.03).claim == "torch is 1.180 times as fast as jax"


def test_a_sentence_can_keep_the_first_contestant_as_its_subject() -> None:
    assert sentence(compared(np.log(2), 0.03), a_first=True).claim.startswith("torch is 0.50")


def test_an_inconclusive_comparison_reports_what_was_not_detectable_and_what_it_takes() -> None:
    text = text_of(0.03, 0.2)
    assert text.claim == "jax may be 1.03 times as fast as torch"
    found = compared(0.03, 0.2)
    assert text.details == (
        "12 blocks; differences below 12 % are not detectable at 80 % power; showing this difference takes about "
        f"{needed_blocks(found)} blocks"
    )
    assert "detecting 2 % takes about 404 blocks" in text_of(0.01, 0.2).details
    assert str(text) == f"inconclusive: {text.without_verdict()}"
    assert "more than 500 blocks" in text_of(0.03, 0.6).details
    assert "954 %" in text_of(0.03, 4.1).details


def test_a_small_effect_that_was_detected_is_not_called_undetectable() -> None:
    lucky = np.array([0.08, 0.09, 0.1, 0.11, 0.12, 0.2, 0.4, 0.9, 1.5])
    found = sentence(judge([block_table({"torch": np.exp(lucky), "jax": np.ones(lucky.size)})])[0])
    assert "minimum detectable effect" in found.details
    assert "not detectable" not in found.details


def test_equivalence_comes_with_the_interval_that_shows_it() -> None:
    text = text_of(0.001, 0.005)
    assert (text.claim, text.interval) == ("jax and torch are equivalent within 2 %: 1.0010", "[0.9993, 1.0025]")
    assert text.details == "90 % confidence interval; 12 blocks"
    assert "within 5 %" in text_of(0.001, 0.005, margin=0.05).claim


@pytest.mark.parametrize(
    ("log_ratio", "metric", "claim"),
    [
        (np.log(2), THROUGHPUT, "torch is 2.00 times as fast as jax"),
        (-np.log(2), THROUGHPUT, "jax is 2.00 times as fast as torch"),
        (np.log(2), COMPILE_TIME, "compile time of jax is 0.500 times that of torch"),
        (np.log(2), Metric("accuracy", "%", better="higher", is_speed=False), "accuracy of torch is 2.00 times that"),
    ],
)
def test_only_a_speed_is_called_fast(log_ratio: float, metric: Metric, claim: str) -> None:
    assert text_of(log_ratio, 0.2, metric=metric).claim.startswith(claim)


def test_a_difference_within_the_margin_is_marked() -> None:
    assert text_of(0.005, 0.002).details.startswith("within 2 %; 12 blocks;")
    assert "within" not in text_of(0.2, 0.002).details


def test_too_few_blocks_give_no_interval() -> None:
    text = text_of(0.5, 0.01, blocks=4)
    assert (text.claim, text.interval, text.inconclusive) == ("jax may be 1.65 times as fast as torch", "", True)
    assert "at least 6" in text.details


def test_evidence_from_one_process_is_labelled() -> None:
    assert text_of(0.5, 0.01, evidence="within one process").claim.startswith("in this process ")
    assert text_of(0.5, 0.01, evidence="of running servers").claim.startswith("as these servers run, ")
    assert not text_of(0.5, 0.01).claim.startswith("in this process ")


def test_modes_under_a_ratio_are_named() -> None:
    modes = np.where(np.arange(12) % 4 == 0, 0.9, 0.0) + 0.01 * STEPS
    found = judge([block_table({"torch": np.exp(2 + modes), "jax": np.exp(0.01 * STEPS[::-1])})])[0]
    assert "torch fall into 2 modes" in sentence(found).details


@pytest.mark.parametrize(("log_ratio", "spread"), [(0.03, 0.1), (0.03, 0.2), (0.08, 0.2)])
def test_so_many_blocks_show_the_difference_at_hand_in_four_of_five_runs(log_ratio: float, spread: float) -> None:
    found = compared(log_ratio, spread)
    needed = needed_blocks(found)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert needed is not None
    assert needed > found.blocks
    assert power(log_ratio / float(np.std(spread * STEPS, ddof=1)), needed, 0.05) > 0.8


def test_a_decided_comparison_needs_no_more_blocks_and_too_few_need_the_least() -> None:
    assert needed_blocks(compared(0.5, 0.01)) is None
    few = judge([block_table({"torch": [1.0, 2.0, 1.5], "jax": [1.1, 1.0, 1.2]})])[0]
    assert needed_blocks(few) == 6


@pytest.mark.parametrize("seed", range(5))
def test_the_number_of_blocks_it_names_would_detect_the_margin(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.07, 12)
    found = judge([block_table({"torch": np.exp(noise - noise.mean()), "jax": np.ones(12)})])[0]
    needed = re.search(r"takes about (\d+) blocks", sentence(found).details)
    assert needed
    assert power(np.log1p(0.02) / float(np.std(noise, ddof=1)), int(needed[1]), 0.05) > 0.8


@given(st.floats(-0.004, 0.004), st.floats(1e-7, 0.01))
def test_a_printed_bound_never_contradicts_the_verdict_beside_it(log_ratio: float, spread: float) -> None:
    found = compared(log_ratio, spread)
    low, high = map(float, sentence(found).interval.strip("[]").split(", "))
    if found.verdict in (Verdict.FASTER, Verdict.SLOWER):
        assert low > 1
    elif found.verdict is Verdict.INCONCLUSIVE:
        assert low <= 1 <= high


@pytest.mark.parametrize(
    ("shift", "low"), [(0.0003, "1.0003"), (0.0001, "1.0001"), (0.00003, "1.00003"), (-0.0003, "0.9997")]
)
def test_a_bound_that_would_round_to_one_gets_another_digit(shift: float, low: str) -> None:
    # Thirteen Walsh averages are cut at each end; the shift puts the fourteenth just beyond 1.
    lowest = np.sort([(STEPS[i] + STEPS[j]) / 2 for i in range(12) for j in range(i, 12)])[13]
    assert text_of(shift - 0.03 * lowest, 0.03).interval.startswith(f"[{low}, 1.0")


@pytest.mark.parametrize(("spread", "digits"), [(1.0, 2), (0.1, 2), (0.02, 3), (0.002, 4), (0.0002, 5), (1e-9, 6)])
def test_digits_follow_the_width_of_the_interval(spread: float, digits: int) -> None:
    low = text_of(1.0, spread).interval.split(",")[0]
    assert len(low.split(".")[1]) == digits

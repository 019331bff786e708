"""The stopping rule sees spread and never sign."""

import numpy as np
import pytest
from fairlap.verdict import BadOption, StoppingRule, advise, block_table
from fairlap.verdict.exact_tests.signed_rank import interval, walsh_averages
from fairlap.verdict.when_to_stop.precise_enough import blinded_half_width
from hypothesis import given
from hypothesis import strategies as st


def table(spread: float, blocks: int, contestants: int = 2, step: float = 0.0):  # type: ignore[no-untyped-def]
    noise = np.random.default_rng(3).normal(0, spread, (blocks, contestants))
    return block_table({f"c{i}": np.exp(noise[:, i] + step * i) for i in range(contestants)})


@given(st.integers(0, 2**32 - 1))
def test_swapping_contestants_inside_blocks_cannot_change_the_advice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    figures = rng.normal(0, 0.02, (14, 3))
    swapped = rng.permuted(figures, axis=1)
    assert blinded_half_width(figures, 0.05) == pytest.approx(blinded_half_width(swapped, 0.05), abs=1e-15)


@pytest.mark.parametrize("step", [0.0, 0.01, 0.02, 0.05, 0.5])
def test_on_average_the_blinded_half_width_is_close_to_the_real_one(step: float) -> None:
    figures = np.random.default_rng(1).normal(0, 0.01, (2000, 20, 2)) + np.array([0.0, step])
    low, high = interval(walsh_averages(figures[..., 0] - figures[..., 1]), 0.05)
    real = float(np.mean(high - low) / 2)
    assert float(np.mean(blinded_half_width(figures, 0.05))) == pytest.approx(real, rel=0.15)


def test_the_widest_pair_decides() -> None:
    figures = np.random.default_rng(1).normal(0, 1, (20, 3)) * np.array([0.001, 0.001, 0.1]) + np.array([0, 1, 5])
    alone = blinded_half_width(figures[:, [1, 2]], 0.05)
    assert blinded_half_width(figures, 0.05) >= alone > 10 * blinded_half_width(figures[:, :2], 0.05)


def test_before_the_minimum_it_goes_on_however_narrow() -> None:
    advice = advise(table(1e-6, 8), StoppingRule())
    assert (advice.stop, advice.reason) == (False, "below the minimum")
    assert advice.half_width < 1e-5


def test_a_narrow_interval_stops_at_the_minimum() -> None:
    advice = advise(table(0.001, 12), StoppingRule())
    assert (advice.stop, advice.reason) == (True, "target met")


def test_a_wide_interval_goes_on() -> None:
    advice = advise(table(0.02, 12), StoppingRule(cap=500))
    assert (advice.stop, advice.reason) == (False, "too wide yet")


def test_the_cap_ends_the_run() -> None:
    advice = advise(table(0.5, 30), StoppingRule(cap=30))
    assert (advice.stop, advice.reason) == (True, "cap reached")
    assert advise(table(0.5, 29), StoppingRule(cap=30)).stop is False


def test_blocks_too_few_for_any_interval_go_on() -> None:
    advice = advise(table(0.01, 4), StoppingRule(minimum=3, cap=40))
    assert (advice.stop, advice.half_width) == (False, np.inf)


def test_more_pairs_need_a_stricter_level() -> None:
    three = table(0.01, 20, contestants=3)
    advice = advise(three, StoppingRule(alpha=0.06))
    assert advice.half_width == float(blinded_half_width(three.log_figures, 0.02))


def test_the_target_is_met_by_an_interval_of_exactly_its_width() -> None:
    width = advise(table(0.02, 20), StoppingRule()).half_width
    assert advise(table(0.02, 20), StoppingRule(half_width=np.expm1(width) * (1 + 1e-12))).reason == "target met"
    assert advise(table(0.02, 20), StoppingRule(half_width=np.expm1(width) * 0.9999)).reason == "too wide yet"


@pytest.mark.parametrize(
    "options",
    [
        {"half_width": 0.0},
        {"half_width": 1.0},
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"minimum": 1},
        {"minimum": 13, "cap": 12},
    ],
)
def test_a_rule_without_meaning_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(BadOption):
        StoppingRule(**options)  # type: ignore[arg-type]


def test_the_narrowest_rules_that_have_a_meaning_are_accepted() -> None:
    assert StoppingRule(minimum=2, cap=2).cap == 2
    assert (StoppingRule().half_width, StoppingRule().minimum, StoppingRule().cap, StoppingRule().alpha) == (
        0.01, 12, 60, 0.05,
    )  # fmt: skip

"""Effects that could have shown, and blocks that would show them."""

import numpy as np
import pytest
from fairlap.verdict import BadOption, blocks_needed, power
from fairlap.verdict.detectable_effects import detectable_log_effect
from fairlap.verdict.exact_tests import signed_rank
from fairlap.verdict.exact_tests.signed_rank import interval, walsh_averages

NOISE = np.random.default_rng(4).normal(0, 0.02, (300, 12))


def declared(d: np.ndarray, level: float = 0.05) -> np.ndarray:
    return detectable_log_effect(d, signed_rank.centre(walsh_averages(d)), level)


def test_an_effect_of_the_declared_size_is_found_in_four_of_five_fresh_runs() -> None:
    fresh = np.random.default_rng(5).normal(0, 0.02, (300, 12))
    low, _ = interval(walsh_averages(fresh + declared(NOISE)[:, None]), 0.05)
    assert 0.76 <= float(np.mean(low > 0)) <= 0.92


def test_two_thirds_of_the_declared_effect_are_found_less_often() -> None:
    fresh = np.random.default_rng(5).normal(0, 0.02, (300, 12))
    low, _ = interval(walsh_averages(fresh + declared(NOISE)[:, None] * 2 / 3), 0.05)
    assert float(np.mean(low > 0)) < 0.65


def test_the_declared_effect_scales_with_the_noise_and_ignores_the_effect_itself() -> None:
    np.testing.assert_allclose(declared(3 * NOISE[:5]), 3 * declared(NOISE[:5]), rtol=1e-9)
    np.testing.assert_allclose(declared(NOISE[:5] + 0.7), declared(NOISE[:5]), rtol=1e-9)
    np.testing.assert_allclose(declared(-NOISE[:5]), declared(NOISE[:5]), rtol=1e-9)
    np.testing.assert_allclose(declared(NOISE[:5, ::-1]), declared(NOISE[:5]), rtol=1e-9)


def test_a_stricter_level_needs_a_larger_effect_and_an_unreachable_one_is_infinite() -> None:
    assert (declared(NOISE[:5], 0.01) > declared(NOISE[:5], 0.05)).all()
    assert np.isinf(declared(NOISE[:5], 1e-4)).all()
    assert np.isinf(declared(NOISE[:5, :5])).all()


def test_the_figure_of_a_worked_example_does_not_move() -> None:
    # For six blocks the interval is the range; the draws of signs leave one residual on each side or more.
    d = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    assert float(declared(d)) == pytest.approx(3 * np.sqrt(6 / 5))


def test_half_a_tick_of_a_coarse_clock_is_added() -> None:
    # One difference is exactly zero, so the smallest other one is the tick.
    d = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 2.0])
    no_zero = d + 1e-6
    assert float(declared(d)) == pytest.approx(float(declared(no_zero)) + 0.5, abs=1e-4)
    assert float(declared(np.zeros(6))) == 0.0


# The protocol's table: effect over spread -> blocks for 80 % power at alpha .05 and .005. Two entries of it
# (1.0 at .05 and 0.25) differ from the moment formula by one to three blocks.
@pytest.mark.parametrize(
    ("relative", "level", "blocks", "slack"),
    [
        (2.5, 0.05, 6, 0), (2.5, 0.005, 9, 0), (1.0, 0.05, 11, 1), (1.0, 0.005, 19, 0),
        (0.5, 0.05, 36, 0), (0.5, 0.005, 60, 0), (0.25, 0.05, 132, 4), (0.25, 0.005, 230, 6),
    ],
)  # fmt: skip
def test_planned_blocks_are_those_of_the_protocols_table(
    relative: float, level: float, blocks: int, slack: int
) -> None:
    planned = blocks_needed(np.expm1(0.01 * relative), 0.01, level=level)
    assert abs(planned - blocks) <= slack


@pytest.mark.parametrize(("relative", "blocks"), [(0.0, 12), (0.5, 20), (1.0, 12), (0.25, 60)])
def test_planned_power_is_what_simulation_finds(relative: float, blocks: int) -> None:
    walsh = walsh_averages(np.random.default_rng(0).normal(relative, 1, (4000, blocks)))
    found = float(np.mean(interval(walsh, 0.05)[0] > 0))
    assert power(relative, blocks, 0.05) == pytest.approx(found, abs=0.035)


def test_planned_power_does_not_move() -> None:
    # Simulation finds 0.54, 0.85 and 0.82; the normal tail beyond an exact critical value is a little low.
    found = [power(0.5, 20, 0.05), power(1.0, 12, 0.05), power(0.5, 36, 0.05)]
    assert found == pytest.approx([0.51401, 0.84892, 0.81209], abs=2e-5)


def test_blocks_that_cannot_reach_the_level_have_no_power() -> None:
    assert power(9.0, 5, 0.05) == 0.0
    assert power(9.0, 6, 0.05) > 0.99


def test_more_power_needs_more_blocks() -> None:
    assert blocks_needed(0.02, 0.02, wanted_power=0.95) > blocks_needed(0.02, 0.02) > 6
    # The power at the planned number suffices, and one block fewer would not have.
    n = blocks_needed(0.02, 0.03)
    relative = np.log(1.02) / 0.03
    assert power(relative, n, 0.05) >= 0.8 > power(relative, n - 1, 0.05)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"effect": 0.0, "spread": 0.1}, "both must be above zero"),
        ({"effect": 0.1, "spread": 0.0}, "both must be above zero"),
        ({"effect": 0.1, "spread": 0.1, "level": 0.0}, "level must be"),
        ({"effect": 0.1, "spread": 0.1, "wanted_power": 1.0}, "wanted power must be"),
        ({"effect": 0.001, "spread": 0.5}, "needs over 500 blocks; control the conditions first"),
    ],
)
def test_a_plan_without_meaning_is_refused(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        blocks_needed(**arguments)

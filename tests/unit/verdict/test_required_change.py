"""A requirement on a quantity is read off the closed interval of its ratio, ties included."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.verdict import (
    Comparison,
    Metric,
    RequiredChange,
    Slowdown,
    Verdict,
    block_table,
    blocks_to_claim,
    judge,
    required_changes_of,
    required_sentence,
)

MEMORY = Metric("peak memory", "B", is_speed=False)
MET, UNMET, OPEN = Slowdown.WITHIN, Slowdown.EXCEEDED, Slowdown.UNDECIDED


def compared(change: list[float], base: list[float], level: float = 0.05) -> Comparison:
    [found] = judge([block_table({"change": change, "base": base}, metric=MEMORY)], alpha=level)
    return found


def required(text: str) -> RequiredChange:
    [found] = required_changes_of([text])
    return found


def outcome(text: str, found: Comparison) -> Slowdown:
    return required(text).outcome(found.interval.low, found.interval.high)


@pytest.mark.parametrize(
    ("text", "quantity", "operator", "bound"),
    [
        ("memory_peak<=+2%", "memory_peak", "<=", 1.02),
        (" cpu_time < +0.05 ", "cpu_time", "<", 1.05),
        ("throughput>=-2%", "throughput", ">=", 0.98),
        ("memory_peak<=-20%", "memory_peak", "<=", 0.8),
        ("memory_peak<=+0%", "memory_peak", "<=", 1.0),
        ("compile_time<=+250%", "compile_time", "<=", 3.5),
    ],
)
def test_a_requirement_names_a_quantity_and_a_change(text: str, quantity: str, operator: str, bound: float) -> None:
    found = required(text)
    assert (found.text, found.quantity, found.operator) == (text.strip(), quantity, operator)
    assert found.bound == pytest.approx(bound)


@pytest.mark.parametrize(
    "text",
    ["memory_peak", "memory_peak<=2%", "memory_peak<=2GB", "memory_peak<=+2GB", "memory_peak=+2%", "<=+2%", "",
     "memory_peak<=-100%", "memory_peak<=+2", "memory_peak<=+nan%", "memory_peak<=+1e9%", "a<=+1%,", "a<=+1%<=+2%"],
)  # fmt: skip
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        required_changes_of([text])
    assert refused.value.code == "E_REQUIRE"


def test_several_are_separated_by_commas_and_none_bounds_a_quantity_twice() -> None:
    texts = ["memory_peak<=+2%,cpu_time<=+5%", "memory_peak>=-10%"]
    assert [each.quantity for each in required_changes_of(texts)] == ["memory_peak", "cpu_time", "memory_peak"]
    with pytest.raises(InvalidRequest):
        required_changes_of(["memory_peak<=+2%", "memory_peak<+5%"])


@pytest.mark.parametrize(
    ("text", "low", "high", "found"),
    [
        ("m<=+2%", 1.0, 1.01, MET), ("m<=+2%", 1.01, 1.03, OPEN), ("m<=+2%", 1.021, 1.03, UNMET),
        ("m<=+2%", 1.02, 1.02, MET), ("m<+2%", 1.02, 1.02, UNMET), ("m<=+0%", 1.0, 1.0, MET),
        ("m<+0%", 1.0, 1.0, UNMET), ("m<=+0%", 1.0, 1.001, OPEN), ("m<=+0%", 1.0001, 1.001, UNMET),
        ("m<=+2%", 0.0, float("inf"), OPEN), ("t>=-2%", 0.99, 1.2, MET), ("t>=-2%", 0.9, 0.97, UNMET),
        ("t>=-2%", 0.9, 0.99, OPEN), ("t>=-2%", 0.98, 0.98, MET), ("t>-2%", 0.98, 0.98, UNMET),
        ("t>=-2%", 0.0, float("inf"), OPEN),
    ],
)  # fmt: skip
def test_the_interval_decides(text: str, low: float, high: float, found: Slowdown) -> None:
    assert required(text).outcome(low, high) is found


@pytest.mark.parametrize("blocks", range(2, 12))
def test_memory_that_is_equal_to_the_byte_is_equivalent_from_six_blocks_on(blocks: int) -> None:
    found = compared([1e8] * blocks, [1e8] * blocks)
    assert found.ratio == 1.0
    assert found.verdict is (Verdict.EQUIVALENT if blocks >= 6 else Verdict.INCONCLUSIVE)
    assert outcome("m<=+0%", found) is (MET if blocks >= 6 else OPEN)
    assert outcome("m<=+2%", found) is (MET if blocks >= 6 else OPEN)


@pytest.mark.parametrize("blocks", range(2, 12))
def test_memory_that_differs_by_the_same_byte_in_every_block_is_different_from_six_blocks_on(blocks: int) -> None:
    found = compared([1e8 + 4096] * blocks, [1e8] * blocks)
    assert found.ratio == pytest.approx(1 + 4096 / 1e8, rel=1e-12)
    assert found.verdict is (Verdict.SLOWER if blocks >= 6 else Verdict.INCONCLUSIVE)
    assert outcome("m<=+0%", found) is (UNMET if blocks >= 6 else OPEN)
    assert outcome("m<=+2%", found) is (MET if blocks >= 6 else OPEN)


@pytest.mark.parametrize(("quantities", "blocks"), [(1, 6), (2, 7), (3, 7), (4, 8), (8, 9)])
def test_the_documented_blocks_are_those_with_which_so_many_quantities_can_be_decided(
    quantities: int, blocks: int
) -> None:
    assert blocks_to_claim(alpha=0.05 / quantities) == blocks
    for count, found in ((blocks - 1, OPEN), (blocks, UNMET)):
        assert outcome("m<=+2%", compared([1.2e8] * count, [1e8] * count, 0.05 / quantities)) is found


def test_one_page_in_one_block_of_eight_is_no_difference() -> None:
    found = compared([1e8] * 7 + [1e8 + 4096], [1e8] * 8)
    assert found.verdict is Verdict.EQUIVALENT
    assert found.interval.low == 1.0
    assert "memory_peak<=+2%" in required_sentence(found, required("memory_peak<=+2%"))


def most_of(runs: int, rate: float) -> float:
    """Bound the count that a true rate leaves: three standard deviations above it."""
    return runs * rate + 3 * math.sqrt(runs * rate * (1 - rate))


@pytest.mark.slow_but("30")
@pytest.mark.parametrize("pages", [1, 30])
def test_equals_whose_memory_comes_in_pages_are_called_different_in_at_most_one_run_of_twenty(pages: int) -> None:
    """Of one page half of the blocks are ties. Both sides draw from one distribution, in 400 runs of 12 blocks."""
    runs = 400
    drawn = np.random.default_rng(pages).integers(0, pages + 1, (runs, 2, 12)) * 4096 + 1e8
    found = [compared(list(one), list(other)) for one, other in drawn]
    wrong = sum(each.verdict in (Verdict.FASTER, Verdict.SLOWER) for each in found)
    beyond = sum(outcome("m<=+0%", each) is UNMET for each in found)
    assert wrong <= most_of(runs, 0.05)
    assert beyond <= most_of(runs, 0.025)

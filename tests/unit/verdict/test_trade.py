"""What a faster contestant costs is named where both halves are shown, and never otherwise."""

from __future__ import annotations

import pytest
from fairlap.verdict import (
    LATENCY,
    THROUGHPUT,
    TIME_PER_REQUEST,
    Comparison,
    Metric,
    block_table,
    judge,
    trade_sentence,
)

MEMORY = Metric("peak memory", "B", is_speed=False)
COMPILING = Metric("compile time", "ns", is_speed=False)
NOISE = [1.0, 1.001, 0.999, 1.002, 0.998, 1.0005, 0.9995, 1.0]


def compared(metric: Metric, change: float, base: float, blocks: int = 8) -> Comparison:
    """Compare two contestants that have the same noise, in other blocks."""
    figures = {
        "change": [change * each for each in NOISE[:blocks]],
        "base": [base * each for each in reversed(NOISE[:blocks])],
    }
    [found] = judge([block_table(figures, metric=metric)])
    return found


def test_faster_for_more_memory_is_one_sentence_from_either_side() -> None:
    time, memory = compared(LATENCY, 1.0, 1.05), compared(MEMORY, 1.2e8, 1e8)
    text = "change is 5 % faster than base for 20 % more peak memory"
    assert trade_sentence(time, [memory]) == text
    assert trade_sentence(time.reversed(), [memory]) == text
    assert trade_sentence(time, [memory.reversed()]) == text


def test_a_slower_change_that_saves_memory_is_the_same_trade_of_the_base() -> None:
    time, memory = compared(LATENCY, 1.1, 1.0), compared(MEMORY, 1e8, 1.5e8)
    assert trade_sentence(time, [memory]) == "base is 10 % faster than change for 50 % more peak memory"


def test_several_prices_are_listed() -> None:
    others = [compared(MEMORY, 1.2e8, 1e8), compared(COMPILING, 3e9, 2e9)]
    found = trade_sentence(compared(LATENCY, 1.0, 1.05), others)
    assert found.endswith("for 20 % more peak memory and 50 % more compile time")


@pytest.mark.parametrize(
    ("time", "other"),
    [
        (compared(LATENCY, 1.0, 1.0), compared(MEMORY, 1.2e8, 1e8)),  # equivalent times
        (compared(LATENCY, 1.0, 1.05), compared(MEMORY, 1e8, 1e8)),  # equal memory
        (compared(LATENCY, 1.0, 1.05), compared(MEMORY, 1e8, 1.2e8)),  # both are better
        (compared(LATENCY, 1.0, 1.05, blocks=4), compared(MEMORY, 1.2e8, 1e8)),  # nothing is shown
        (compared(LATENCY, 1.0, 1.05), compared(MEMORY, 1.2e8, 1e8, blocks=4)),
        (compared(LATENCY, 1.0, 1.05), compared(THROUGHPUT, 1.0, 1.05)),  # the same speed once more
    ],
)
def test_nothing_is_traded_where_one_half_is_not_shown(time: Comparison, other: Comparison) -> None:
    assert trade_sentence(time, [other]) == ""


def test_a_rate_is_higher_and_not_faster() -> None:
    found = trade_sentence(compared(TIME_PER_REQUEST, 1.0, 1.25), [compared(MEMORY, 1.2e8, 1e8)])
    assert found == "the largest rate of change is 25 % higher than that of base for 20 % more peak memory"

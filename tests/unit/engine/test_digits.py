"""Figures are printed as a person reads them, and never finer than the clock can tell."""

from __future__ import annotations

import math

import pytest
from fairlap.engine.digits import duration, interval
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("ns", "resolution_ns", "text"),
    [
        (10_020.0, 10.0, "10.02 us"),
        (10_020.0, 10.02, "10.02 us"),
        (10_020.0, 100.0, "10.0 us"),
        (32.46, 0.08, "32.5 ns"),
        (154.3, 0.3, "154 ns"),
        (154.3, 10.0, "150 ns"),
        (1.0, 0.001, "1.000 ns"),
        (0.0, 10.0, "0 ns"),
        (-4.2, 10.0, "0 ns"),
        (2.5e9, 10.0, "2.500 s"),
        (12_345_678.0, 10.0, "12.35 ms"),
        (math.nan, 10.0, "unknown"),
    ],
)
def test_a_duration_shows_four_figures_and_none_below_its_resolution(
    ns: float, resolution_ns: float, text: str
) -> None:
    assert duration(ns, resolution_ns) == text


def test_an_interval_is_in_the_unit_and_digits_of_its_middle() -> None:
    assert interval(1_500.0, 990.0, 2_100.0, 10.0) == "1.50 us [0.99, 2.10]"


@given(
    ns=st.floats(min_value=0.01, max_value=1e13),
    resolution_ns=st.floats(min_value=1e-3, max_value=1e4),
)
def test_what_is_printed_is_within_one_printed_digit_or_resolution(ns: float, resolution_ns: float) -> None:
    number, unit = duration(ns, resolution_ns).split()
    size_ns = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    decimals = len(number.partition(".")[2])
    printed_ns = float(number.replace(",", "")) * size_ns
    digit_ns = size_ns / 10**decimals
    assert abs(printed_ns - ns) <= max(digit_ns, 10 * resolution_ns)
    assert digit_ns >= resolution_ns / 1.3 or decimals == 0

"""Figures are printed as a person reads them, and never finer than the clock can tell."""

from __future__ import annotations

import math

import pytest
from fairlap.quantity_text import (
    common_unit_ns,
    count,
    duration,
    duration_and_bounds,
    duration_interval,
    number,
    probability,
    quantity,
    ratio_interval,
    relative_error,
    rough_duration,
    share,
    size,
    times,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("ns", "resolution_ns", "text"),
    [
        (10_020.0, 10.0, "10.02 µs"),
        (10_020.0, 10.02, "10.02 µs"),
        (10_020.0, 100.0, "10.0 µs"),
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
    assert duration_interval(1_500.0, 990.0, 2_100.0, 10.0) == "1.50 µs [0.99, 2.10]"
    assert duration_interval(1_500.0, None, None) == "1.500 µs"
    assert duration_and_bounds(1_500.0, 990.0, math.inf) == ("1.500 µs", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (number(999.6), "1,000"),
        (number(62.13), "62.1"),
        (number(12_345.6), "12,346"),
        (count(1, "sample"), "1 sample"),
        (count(2_000, "process"), "2,000 processes"),
        (share(0.0283), "2.8 %"),
        (share(0.997), "100 %"),
        (share(9.54), "954 %"),
        (share(0.97531, 4), "97.53 %"),
        (size(512), "512 B"),
        (size(1536), "1.5 KiB"),
        (size(1023.6 * 2**20), "1 GiB"),
        (size(2**50), "1,024 TiB"),
        (quantity(0.00231, "J", 0.00228, 0.0024), "2.31 mJ [2.28, 2.4]"),
        (quantity(0.0, "J"), "0 J"),
        (quantity(45.23, "W"), "45.2 W"),
        (rough_duration(math.nan), "?"),
        (rough_duration(0.4), "0 s"),
        (rough_duration(90.0), "2 min"),
        (rough_duration(7100), "118 min"),
        (rough_duration(9000), "2 h 30 min"),
        (times(1.566), "1.57×"),
        (times(1234.5), "1,234×"),
        (relative_error(0.0), "exact"),
        (relative_error(4.4e-7), "4.4e-07"),
        (ratio_interval(2.0, 1.5, 2.5), "2.00 [1.50, 2.50]"),
        (ratio_interval(0.08149, None, None), "0.0815"),
    ],
)
def test_every_quantity_has_one_form(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.001, 1.003, "[1.0010, 1.0030]"),
        (0.99996, 1.3, "[0.99996, 1.30000]"),
        (1.0, 1.0, "[1.000000, 1.000000]"),
    ],
)
def test_a_bound_near_1_is_never_printed_as_1(low: float, high: float, text: str) -> None:
    assert ratio_interval(1.0, low, high).endswith(text)


@given(
    ns=st.floats(min_value=0.01, max_value=1e13),
    resolution_ns=st.floats(min_value=1e-3, max_value=1e4),
)
def test_what_is_printed_is_within_one_printed_digit_or_resolution(ns: float, resolution_ns: float) -> None:
    number, unit = duration(ns, resolution_ns).split()
    size_ns = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    decimals = len(number.partition(".")[2])
    printed_ns = float(number.replace(",", "")) * size_ns
    digit_ns = size_ns / 10**decimals
    assert abs(printed_ns - ns) <= max(digit_ns, 10 * resolution_ns)
    assert digit_ns >= resolution_ns / 1.3 or decimals == 0


@pytest.mark.parametrize(
    ("durations_ns", "texts"),
    [
        ((812e3, 8_103e3), ["0.8120 ms", "8.103 ms"]),
        ((95e3, 21_980e3), ["95.00 µs", "21.98 ms"]),
        ((950e3, 2.2e9), ["950.0 µs", "2.200 s"]),
        ((900.0, 8e3), ["0.9000 µs", "8.000 µs"]),
        ((61e3, 8e6), ["61.00 µs", "8,000 µs"]),
        ((math.nan, 5e6), ["unknown", "5.000 ms"]),
    ],
)
def test_a_column_has_one_unit_unless_a_figure_would_lose_its_digits(
    durations_ns: tuple[float, ...], texts: list[str]
) -> None:
    unit_ns = common_unit_ns(durations_ns)
    assert [duration_and_bounds(each, None, None, unit_ns=unit_ns)[0] for each in durations_ns] == texts


@given(st.lists(st.floats(1.0, 1e13), min_size=1, max_size=6))
def test_in_a_common_unit_every_duration_keeps_four_figures(durations_ns: list[float]) -> None:
    unit_ns = common_unit_ns(durations_ns)
    for ns in durations_ns:
        text = duration_and_bounds(ns, None, None, unit_ns=unit_ns)[0]
        shown_ns = (
            float(text.split()[0].replace(",", "")) * {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1.0}[text.split()[1]]
        )
        assert shown_ns == pytest.approx(ns, rel=0.0006)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "50.0 %"),
        (0.9723, "97.2 %"),
        (0.9996, "above 99.9 %"),
        (1.0, "100.0 %"),
        (1e-9, "below 0.1 %"),
        (0.0, "0.0 %"),
    ],
)
def test_a_probability_that_is_not_certain_is_not_printed_as_certain(value: float, text: str) -> None:
    assert probability(value) == text

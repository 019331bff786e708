"""Rounding to fp8 is that of ml_dtypes, which onnx's reference evaluator uses, and saturates as ONNX defines it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from fairlap.models.fp8_graphs.fp8_numbers import FP8, LARGEST, rounded_to_fp8, scales_of, steps_between

ALL = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
FINITE = np.unique(ALL[np.isfinite(ALL)])


def by_ml_dtypes(values: np.ndarray) -> np.ndarray:
    """Saturated first, which the conversion is not."""
    return np.asarray(np.clip(values, -LARGEST, LARGEST).astype(ml_dtypes.float8_e4m3fn).astype(values.dtype))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_number_stays_and_every_midpoint_goes_to_the_even_neighbour(kind: type) -> None:
    halves = ((FINITE[1:] + FINITE[:-1]) / 2).astype(np.float32)  # ml_dtypes rounds float64 to float32 first
    near = [np.nextafter(halves, np.float32(to)) for to in (np.inf, -np.inf)]
    values: np.ndarray = np.concatenate([FINITE, halves, *near]).astype(kind)
    assert np.array_equal(rounded_to_fp8(values), by_ml_dtypes(values))
    assert np.array_equal(rounded_to_fp8(FINITE.astype(kind)), FINITE)


def test_in_float64_the_last_bit_decides_at_a_midpoint() -> None:
    halves = (FINITE[1:] + FINITE[:-1]) / 2
    assert np.array_equal(rounded_to_fp8(np.nextafter(halves, np.inf)), FINITE[1:])
    assert np.array_equal(rounded_to_fp8(np.nextafter(halves, -np.inf)), FINITE[:-1])


def test_drawn_numbers_of_all_sizes_are_rounded_alike() -> None:
    rng = np.random.default_rng(3)
    values = (rng.normal(size=100_000) * 2.0 ** rng.integers(-14, 12, 100_000)).astype(np.float32)
    assert np.array_equal(rounded_to_fp8(values), by_ml_dtypes(values))


def test_what_is_too_large_becomes_the_largest_and_nan_stays() -> None:
    found = rounded_to_fp8(np.array([449, 1e30, np.inf, -np.inf, np.nan], np.float32))
    assert found[:4].tolist() == [LARGEST, LARGEST, LARGEST, -LARGEST]
    assert np.isnan(found[4])
    assert FINITE.max() == LARGEST


def test_neighbours_are_as_far_apart_as_the_steps_say() -> None:
    positive = FINITE[FINITE >= 0]
    assert np.array_equal(np.diff(positive), steps_between(positive[:-1]))


def test_scales_map_the_largest_of_each_channel_to_the_largest_number() -> None:
    weights = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    weights[:, 2] = 0
    found = scales_of(weights, 1)
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx(
        [*np.abs(weights).max(axis=(0, 2))[:2] / LARGEST, 1, *np.abs(weights).max(axis=(0, 2))[3:] / LARGEST]
    )
    assert scales_of(weights, None) == pytest.approx(np.abs(weights).max() / LARGEST)
    assert np.dtype(FP8).itemsize == 1

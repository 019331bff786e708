"""Rounding to bfloat16 is to the nearest, and to even from halfway."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.models.draw import rounded_to_bfloat16
from hypothesis import given
from hypothesis import strategies as st

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**126), max_value=2.0**126)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (1.0, 1.0),
        (1.0 + 2**-8, 1.0),  # halfway, and 1 is the even one
        (1.0 + 3 * 2**-8, 1.0 + 2**-6),
        (1.0 + 2**-8 + 2**-20, 1.0 + 2**-7),
        (-1.0 - 2**-9, -1.0),
        (0.0, 0.0),
    ],
)
def test_a_value_goes_to_the_nearest_bfloat16(value: float, rounded: float) -> None:
    assert rounded_to_bfloat16(np.array([value], np.float32))[0] == rounded


@given(FLOATS)
def test_rounding_moves_by_at_most_half_a_step_and_only_once(value: float) -> None:
    once = rounded_to_bfloat16(np.array([value], np.float32))
    assert abs(float(once[0]) - value) <= max(abs(value) * 2**-8, 1e-40)
    assert once.view(np.uint32)[0] & 0xFFFF == 0
    np.testing.assert_array_equal(rounded_to_bfloat16(once), once)

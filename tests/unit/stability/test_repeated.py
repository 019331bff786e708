"""Answers are compared bit by bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.stability.table import compared
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

FLOATS = arrays_of.arrays(np.float32, arrays_of.array_shapes(max_dims=2, max_side=5), elements=st.floats(width=32))


@given(FLOATS, st.data())
def test_one_other_bit_is_found_and_none_is_equal(array: npt.NDArray[np.float32], data: st.DataObject) -> None:
    same = compared({"x": array}, {"x": array.copy()})
    assert (same.equal, same.differing, same.elements) == (True, 0, array.size)
    bits = array.copy().view(np.uint32)
    bits[data.draw(arrays_of.basic_indices(array.shape, min_dims=0, max_dims=0, allow_ellipsis=False))] ^= np.uint32(1)
    other = compared({"x": array}, {"x": bits.view(np.float32)})
    assert (other.equal, other.differing) == (False, 1)


def test_the_distance_is_that_of_the_norms() -> None:
    first, second = np.array((3.0, 4.0), np.float32), np.array((3.0, 4.5), np.float32)
    assert compared({"x": first}, {"x": second}).relative == pytest.approx(0.1)
    assert compared({"x": first}, {"x": second * np.float32(np.nan)}).relative is None


def test_zeros_of_other_signs_are_other_bits() -> None:
    assert compared({"x": np.zeros(2, np.float32)}, {"x": -np.zeros(2, np.float32)}).equal is False


def test_answers_of_other_shapes_are_not_compared() -> None:
    found = compared({"x": np.zeros(2)}, {"x": np.zeros(3)})
    assert (found.equal, bool(found.why)) == (None, True)

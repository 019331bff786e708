"""The floor of untrusted callables: subtracted where every call takes far longer, and named where a call is near it."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.scenarios.callables.untrusted.floor import Floor


def test_a_disturbed_block_of_the_empty_call_leaves_the_floor_as_it_is() -> None:
    floor = Floor.of([100.0, 101.0, 99.0, 5e6, 100.0], [[1000.0] * 5])
    assert floor == Floor(100.0, True)
    assert np.array_equal(floor.figures([1000.0] * 5), [900.0] * 5)


def test_nothing_is_subtracted_where_one_callable_takes_less_than_twice_as_long() -> None:
    floor = Floor.of([100.0] * 3, [[1000.0] * 3, [150.0] * 3])
    assert not floor.is_subtracted
    assert np.array_equal(floor.figures([150.0] * 3), [150.0] * 3)


def test_no_block_is_left_without_time() -> None:
    floor = Floor.of([100.0] * 3, [[1000.0, 90.0, 1000.0]])
    assert (floor.figures([1000.0, 90.0, 1000.0]) > 0).all()


@pytest.mark.parametrize(("call_ns", "is_near"), [(150.0, True), (900.0, True), (1100.0, False)])
def test_a_call_is_near_the_floor_where_that_is_a_tenth_of_it(call_ns: float, is_near: bool) -> None:
    floor = Floor.of([100.0] * 3, [[call_ns] * 3])
    assert floor.is_near([call_ns] * 3) is is_near
    assert floor.notice([call_ns] * 3).code == "W_NEAR_THE_FLOOR"

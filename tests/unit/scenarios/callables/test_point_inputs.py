"""The inputs of a point: which axes they take, and types and layouts that are applied to what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from fairlap.scenarios.callables.axes.axis import BadAxis, axes_of
from fairlap.scenarios.callables.axes.point_inputs import (
    DrawFailed,
    arrays_in,
    point_inputs,
    with_dtype,
    with_layout,
)


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def draw(rng: np.random.Generator, n: int = 1024, m: int = 3) -> tuple[Any, Any]:
    return rng.random((m, n)), rng.integers(0, n, n)


def test_axes_are_parameters_and_equal_generators_draw_equal_numbers() -> None:
    inputs = point_inputs(draw, axes_of({"n": (4, 8)}))
    rows, places = arrays_in(inputs.at({"n": 8}, rng()))
    assert rows.shape == (3, 8)
    assert (places == list(arrays_in(inputs.at({"n": 8}, rng())))[1]).all()
    others, _ = arrays_in(inputs.at({"n": 8}, rng(8)))
    assert not (rows == others).any()


def test_a_type_is_applied_to_floating_arrays_and_leaves_places_alone() -> None:
    inputs = point_inputs(draw, axes_of({"n": (4,), "dtype": ("float32",), "layout": ("transposed",)}))
    assert inputs.applied == ("dtype", "layout")
    rows, places = arrays_in(inputs.at({"n": 4, "dtype": "float32", "layout": "transposed"}, rng()))
    assert (rows.dtype, places.dtype) == (np.float32, np.int64)
    assert rows.flags.f_contiguous
    assert not rows.flags.c_contiguous


def test_a_type_and_a_layout_that_the_inputs_take_are_theirs() -> None:
    def own(rng: np.random.Generator, n: int, dtype: str, layout: str) -> object:
        return dtype, layout, n

    inputs = point_inputs(own, axes_of({"n": (4,), "dtype": ("bfloat16",), "layout": ("blocked",)}))
    assert inputs.at({"n": 4, "dtype": "bfloat16", "layout": "blocked"}, rng()) == ("bfloat16", "blocked", 4)


def test_inputs_that_take_any_keyword_take_every_axis() -> None:
    inputs = point_inputs(lambda rng, **sizes: sizes, axes_of({"m": (4,), "dtype": ("int4",)}))
    assert inputs.at({"m": 4, "dtype": "int4"}, rng()) == {"m": 4, "dtype": "int4"}


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided"])
def test_a_layout_holds_the_same_values_elsewhere(layout: str) -> None:
    given = np.arange(24.0).reshape(2, 3, 4)
    [laid_out] = arrays_in(with_layout(given, layout))
    assert (laid_out == given).all()
    assert laid_out.strides == {"contiguous": (96, 32, 8), "transposed": (8, 16, 48), "strided": (192, 64, 16)}[layout]
    assert not np.shares_memory(laid_out, given)


def test_arrays_are_found_in_tuples_lists_and_mappings() -> None:
    class Pair(NamedTuple):
        left: Any
        right: Any

    given = ({"a": [np.ones(2)]}, Pair(np.ones(3), "text"), 4)
    found: Any = with_dtype(given, "float16")
    assert [array.dtype for array in arrays_in(found)] == [np.float16] * 2
    assert isinstance(found[1], Pair)
    assert found[1].right == "text"


@pytest.mark.parametrize(
    "apply",
    [
        lambda: with_dtype("no array", "float32"),
        lambda: with_dtype(np.ones(3, bool), "float32"),
        lambda: with_layout(np.ones(3), "transposed"),
        lambda: with_layout(7, "strided"),
    ],
)
def test_what_cannot_be_applied_is_refused(apply: Callable[[], object]) -> None:
    with pytest.raises(BadAxis):
        apply()


@pytest.mark.parametrize(
    ("inputs", "axes", "meant"),
    [
        (draw, {"nn": (4,)}, "did you mean n?"),
        (draw, {"batch": (4,)}, "n, m"),
        (lambda rng, n, k: n, {"n": (4,)}, "'k'"),
        (draw, {"dtype": ("float23",)}, "float32"),
        (draw, {"layout": ("transpose",)}, "transposed"),
        ("draw", {"n": (4,)}, "function"),
    ],
)
def test_axes_that_the_inputs_cannot_have_are_refused_before_anything_runs(
    inputs: Any, axes: dict[str, tuple[object, ...]], meant: str
) -> None:
    with pytest.raises(BadAxis) as error:
        point_inputs(inputs, axes_of(axes))
    assert error.value.code == "E_AXIS"
    assert meant in str(error.value)


def test_inputs_that_raise_name_the_point() -> None:
    def failing(rng: np.random.Generator, n: int) -> object:
        raise MemoryError

    with pytest.raises(DrawFailed) as error:
        point_inputs(failing, axes_of({"n": (4,)})).at({"n": 4}, rng())
    assert error.value.code == "E_DRAW"
    assert "n=4" in str(error.value)

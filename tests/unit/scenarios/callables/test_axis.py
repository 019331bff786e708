"""Values of axes: what can be written, and what is refused with the form that was meant."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.scenarios.callables.axes.axis import Axis, BadAxis, axes_of, axis_in, point_text, points_of


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n=1K..16K:x2", (1024, 2048, 4096, 8192, 16384)),
        ("n=1..1M:x32", (1, 32, 1024, 32768, 1048576)),
        ("n=10..100:+30", (10, 40, 70, 100)),
        ("n=0..3K:+1K", (0, 1024, 2048, 3072)),
        ("n=3..20:x2", (3, 6, 12)),
        ("n=4..9:x1.5", (4, 6, 9)),
        ("n = 8, 1 , 2K", (1, 8, 2048)),
        ("n=1,8..32:x2,1G", (1, 8, 16, 32, 2**30)),
        ("n=1.5K", (1536,)),
        ("p=0.1,0.5,1e-3", (0.001, 0.1, 0.5)),
        ("dtype=float32,float64", ("float32", "float64")),
        ("layout=transposed,contiguous", ("transposed", "contiguous")),
    ],
)
def test_lists_and_ranges_are_read_with_numbers_in_ascending_order(text: str, values: tuple[object, ...]) -> None:
    found = axis_in(text)
    assert found.values == values
    assert [type(each) for each in found.values] == [type(each) for each in values]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("n", "n=1K..1M:x2"),
        ("=4", "n=1K..1M:x2"),
        ("n=", "commas"),
        ("n=1,,2", "commas"),
        ("n=1k", "1K"),
        ("n=4KiB", "4K"),
        ("n=1K..1M", "1K..1M:x2"),
        ("n=1K..1M:2", "1K..1M:x2"),
        ("n=1K..1M:*2", "1K..1M:x2"),
        ("n=1M..1K:x2", "1K..1M:x2"),
        ("n=1..8:x1", "above 1"),
        ("n=0..8:x2", "from 1"),
        ("n=1..8:+0", "above 0"),
        ("n=1..8:+-1", "above 0"),
        ("n=a..b:x2", "1K..1M:x2"),
        ("n=0.5..8:x2", "1K..1M:x2"),
        ("n=1,small", "1K..1M:x2"),
        ("n=4,4", "twice"),
        ("n=1..1G:+1", "larger step"),
        ("n=1e300", "2^53"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_nearest_right_form(text: str, meant: str) -> None:
    with pytest.raises(BadAxis) as error:
        axis_in(text)
    assert error.value.code == "E_AXIS"
    assert meant in str(error.value)


def test_python_takes_sequences_and_the_texts_of_the_command_line() -> None:
    found = axes_of(
        {"n": list(np.array([2048, 1024])), "m": range(2), "dtype": (np.float32, np.dtype("int8")), "k": "1K,2K"}
    )
    assert found == (
        Axis("n", (1024, 2048)),
        Axis("m", (0, 1)),
        Axis("dtype", ("float32", "int8")),
        Axis("k", (1024, 2048)),
    )


@pytest.mark.parametrize(
    "given", [{}, {"n": 4}, {"n": ()}, {"n": (True,)}, {"n": (None,)}, {"n": (1, "a")}, {"n": (int, 3)}]
)
def test_values_that_are_not_numbers_or_texts_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(BadAxis):
        axes_of(given)  # type: ignore[arg-type]


def test_points_are_every_combination() -> None:
    axes = axes_of({"n": (1024, 2048), "dtype": ("float32", "float64")})
    points = list(points_of(axes))
    assert len(points) == 4
    assert points[1] == {"n": 1024, "dtype": "float64"}
    assert point_text(points[1]) == "n=1,024, dtype=float64"


def test_too_many_points_are_refused_before_anything_runs() -> None:
    with pytest.raises(BadAxis):
        axes_of({"n": range(1, 101), "m": range(1, 101)})

"""Shares of roofs follow from what is declared, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.machine.hardware.roofs import Roof, Roofs
from fairlap.scenarios.callables.axes.axis import BadAxis, axes_of
from fairlap.scenarios.callables.axes.declared_work import (
    DeclaredWork,
    RoofShare,
    declared_at_points,
    number_type_of,
    roof_share,
    roof_shares,
)

ROOFS = Roofs(
    threads=1,
    operations_per_s={"fp32": Roof(100e9, 99e9, 101e9), "fp64": Roof(50e9, 49e9, 51e9)},
    bytes_per_s={"L1": Roof(200e9, 1, 1), "memory": Roof(10e9, 1, 1)},
    cache_bytes={"L1": 32 * 1024},
    instructions={},
    measured_at="",
    absent={"int8": "no instructions"},
)
AXES = axes_of({"n": (1, 2), "dtype": ("float32", "float64")})


def test_amounts_are_asked_for_by_the_names_of_the_axes() -> None:
    assert declared_at_points("bytes", lambda n, dtype: n * np.dtype(dtype).itemsize, AXES) == [4, 8, 8, 16]
    assert declared_at_points("flops", lambda n: 2 * n, AXES) == [2, 2, 4, 4]
    assert declared_at_points("flops", lambda **point: point["n"], AXES) == [1, 1, 2, 2]
    assert declared_at_points("flops", None, AXES) == [None] * 4


@pytest.mark.parametrize("declared", [lambda m: m, lambda n: 0, lambda n: "8", lambda n: n / 0, lambda n: float("nan")])
def test_amounts_that_are_no_numbers_above_zero_are_refused(declared: object) -> None:
    with pytest.raises(BadAxis):
        declared_at_points("bytes", declared, AXES)  # type: ignore[arg-type]


def test_the_nearer_roof_is_the_one_that_takes_longer() -> None:
    # 1e6 operations take 10 us at 100e9/s; 1e6 bytes take 100 us at 10e9/s: half of a call of 200 us
    assert roof_share(DeclaredWork(1e6, 1e6, "fp32"), 200_000, ROOFS) == RoofShare("memory", 0.5)
    assert roof_share(DeclaredWork(None, 1e6, "fp64"), 200_000, ROOFS) == RoofShare("fp64", 0.1)


def test_bytes_that_a_cache_holds_are_of_the_cache() -> None:
    # 20,000 bytes take 100 ns at 200e9/s
    assert roof_share(DeclaredWork(20_000, None), 400, ROOFS) == RoofShare("L1", 0.25)


def test_a_share_beyond_what_is_possible_says_so() -> None:
    found = roof_share(DeclaredWork(None, 1e6, "fp32"), 5_000, ROOFS)
    assert isinstance(found, RoofShare)
    assert found.is_impossible
    assert not RoofShare("L1", 1.05).is_impossible


@pytest.mark.parametrize("number_type", ["", "int8", "bf16"])
def test_operations_without_a_roof_have_a_reason_and_no_share(number_type: str) -> None:
    assert isinstance(roof_share(DeclaredWork(None, 1e6, number_type), 1e3, ROOFS), str)


def test_nothing_is_shown_where_nothing_is_declared() -> None:
    assert roof_shares(DeclaredWork(), {"a": 1e3}, ROOFS, "") == {}
    assert roof_shares(DeclaredWork(8, None), {"a": 1e3}, None, "not measured") == {"a": "not measured"}


def test_the_type_of_numbers_is_the_axis_or_the_widest_floating_array() -> None:
    assert number_type_of({"dtype": "float16"}, np.ones(2)) == "fp16"
    assert number_type_of({}, (np.ones(2, np.float32), np.ones(2, np.float64), np.ones(2, int))) == "fp64"
    assert number_type_of({}, [1, 2]) == ""

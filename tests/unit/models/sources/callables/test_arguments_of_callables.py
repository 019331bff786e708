"""Arguments are made again as they were drawn: the same numbers, types, layout and nesting, in memory of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.sources.callables.arguments import Arguments, drawn_arguments, stored_value
from fairlap.models.sources.contract import SourceError
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
          "float64", "complex64", "complex128")  # fmt: skip
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
LAID_OUT = ARRAYS.flatmap(lambda array: st.sampled_from([array, array.T, array[..., ::-1] if array.ndim else array]))
NUMBERS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.complex_numbers()
VALUES = st.recursive(
    LAID_OUT | NUMBERS | st.none() | st.text(max_size=3) | st.lists(st.floats(), min_size=1, max_size=3),
    lambda inner: st.tuples(inner, inner) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=2),
    max_leaves=6,
)


def same(first: Any, second: Any) -> bool:
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        return bool(first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes())
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(np.array_equal(first, second, equal_nan=isinstance(first, float | complex)))


@given(st.tuples(VALUES, VALUES))
def test_a_call_gets_what_was_drawn(drawn: tuple[Any, Any]) -> None:
    arguments, stored = drawn_arguments(drawn, ["x", "y"])
    arguments = msgspec.json.decode(msgspec.json.encode(arguments), type=Arguments)
    made = arguments.made(stored)
    assert same(made.positional, drawn)
    assert not made.keywords
    for name, leaf in arguments.leaves().items():
        assert stored_value(leaf, made.leaves[name]).tobytes() == stored[name].tobytes()


@given(LAID_OUT)
def test_an_array_keeps_its_strides_and_begins_at_64_bytes(array: np.ndarray) -> None:
    arguments, stored = drawn_arguments(array, [])
    [made] = arguments.made(stored).positional
    assert made.flags.writeable
    assert not np.shares_memory(made, array)
    if array.size:
        assert made.strides == array.strides or array.flags.c_contiguous
        assert made.flags.c_contiguous == array.flags.c_contiguous


def test_a_file_holds_every_type(tmp_path: Path) -> None:
    drawn = {dtype: np.arange(6).reshape(2, 3).astype(dtype) for dtype in DTYPES}
    arguments, stored = drawn_arguments(drawn, [])
    safetensors.write(tmp_path / "arguments", stored)
    assert same(arguments.made(safetensors.read(tmp_path / "arguments")).keywords, drawn)


@pytest.mark.parametrize(
    "value",
    [object(), np.array(["a"]), np.array([object()]), 2**70, np.ma.array([1]), np.longdouble(1), {1, 2}, b"bytes",
     np.array([1], ">f4"), np.datetime64("2026-01-01")],
)  # fmt: skip
def test_what_no_file_can_hold_is_refused(value: object) -> None:
    with pytest.raises(SourceError) as refused:
        drawn_arguments((value,), ["x"])
    assert refused.value.code == "E_SOURCE_INPUTS"

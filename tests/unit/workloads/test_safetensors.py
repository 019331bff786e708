"""Arrays come back as they were, aligned and read-only; a spoiled file is refused with a reason."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.workloads import safetensors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

TYPES = st.sampled_from(["<f4", "<f8", "<i4", "<i8"])
ARRAYS = TYPES.flatmap(lambda dtype: arrays(np.dtype(dtype), array_shapes(min_dims=0, min_side=0, max_side=5)))
NAMES = st.text(min_size=1, max_size=12).filter(lambda name: name != "__metadata__" and not name.startswith("padding/"))


@given(st.dictionaries(NAMES, ARRAYS, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_arrays_come_back_equal_aligned_and_read_only(tmp_path: Path, written: dict[str, npt.NDArray[Any]]) -> None:
    path = tmp_path / "arrays.safetensors"
    safetensors.write(path, written)
    read = safetensors.read(path)
    assert list(read) == list(written)
    for name, array in written.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)
        assert not read[name].flags.writeable
        assert read[name].size == 0 or read[name].ctypes.data % safetensors.ALIGNMENT == 0


def test_another_reader_of_the_format_reads_the_same(tmp_path: Path) -> None:
    real = pytest.importorskip("safetensors.numpy", reason="the safetensors package is not installed")
    arrays_written: dict[str, npt.NDArray[Any]] = {
        "a": np.arange(5, dtype=np.float32),
        "b": np.ones((3, 2)),
        "c": np.arange(7, dtype=np.int32),
    }
    path = tmp_path / "arrays.safetensors"
    safetensors.write(path, arrays_written)
    read = real.load_file(path)
    for name, array in arrays_written.items():
        np.testing.assert_array_equal(read[name], array)


def test_what_the_format_cannot_hold_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "arrays.safetensors"
    with pytest.raises(safetensors.BadFile, match="a is complex128; only float32"):
        safetensors.write(path, {"a": np.ones(3, dtype=complex)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot be read"),
        (b"\0" * 4, "longer than the file"),
        (b"\xff" * 100, "longer than the file"),
        ((2).to_bytes(8, "little") + b"[]", "is not a safetensors file"),
        ((9).to_bytes(8, "little") + b'{"a": {}}', "is not a safetensors file"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(safetensors.BadFile, match=words):
        safetensors.read(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 12]},
        {"dtype": "F32", "shape": [4], "data_offsets": [1000, 1016]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [4], "data_offsets": [-16, 0]},
        {"dtype": "F99", "shape": [4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": "four", "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [4]},
    ],
)
def test_an_array_that_does_not_fit_its_file_is_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    path = tmp_path / "bad.safetensors"
    header = json.dumps({"a": entry}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 16)
    with pytest.raises(safetensors.BadFile, match="is not a safetensors file that fairlap can read"):
        safetensors.read(path)


def test_a_spoiled_byte_gives_arrays_or_a_refusal_and_never_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "arrays.safetensors"
    safetensors.write(path, {"a": np.arange(5, dtype=np.float32), "b": np.ones((3, 2))})
    whole = path.read_bytes()
    rng = random.Random(1)
    for _ in range(400):
        spoiled = bytearray(whole)
        spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
        path.write_bytes(spoiled[: rng.choice([len(spoiled), rng.randrange(len(spoiled))])])
        try:
            safetensors.read(path)
        except safetensors.BadFile:
            continue


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(safetensors.BadFile, match=r"nowhere cannot be read"):
        safetensors.read(tmp_path / "nowhere")

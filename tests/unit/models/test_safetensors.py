"""Files of arrays: what is written is read, others can read it, and a bad file gets a clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.array_files.safetensors import ALIGNMENT, BadFile, NotWritten, read, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

TYPES = st.sampled_from([np.float32, np.float64, np.int32, np.int64])
NAMES = st.text(min_size=1, max_size=20).filter(lambda name: not name.startswith(("padding/", "__metadata__")))
SHAPES = st.one_of(st.just(()), array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
ARRAYS = st.dictionaries(NAMES.filter(lambda name: name.isprintable()), arrays(TYPES, SHAPES), max_size=5)
SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

SOME = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array([1, 2, 3], np.int32)}


@SAME_FOLDER
@given(ARRAYS)
def test_what_is_written_is_read_back_bit_by_bit(tmp_path: Path, given_arrays: dict[str, np.ndarray]) -> None:
    file = tmp_path / "any.safetensors"
    write(file, given_arrays)
    back = read(file)
    assert list(back) == list(given_arrays)
    for name, array in given_arrays.items():
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        assert back[name].tobytes() == array.tobytes()


@SAME_FOLDER
@given(ARRAYS)
def test_the_format_s_own_package_reads_what_we_write(tmp_path: Path, given_arrays: dict[str, np.ndarray]) -> None:
    theirs = pytest.importorskip("safetensors.numpy", reason="`make test` installs it and runs this")
    file = tmp_path / "any.safetensors"
    write(file, given_arrays)
    read_by_them = {name: array for name, array in theirs.load_file(file).items() if not name.startswith("padding/")}
    assert read_by_them.keys() == given_arrays.keys()
    assert all(read_by_them[name].tobytes() == array.tobytes() for name, array in given_arrays.items())


@SAME_FOLDER
@given(ARRAYS)
def test_we_read_what_the_format_s_own_package_writes(tmp_path: Path, given_arrays: dict[str, np.ndarray]) -> None:
    theirs = pytest.importorskip("safetensors.numpy", reason="`make test` installs it and runs this")
    file = tmp_path / "theirs.safetensors"
    theirs.save_file(given_arrays, file, metadata={"written": "by others"})
    back = read(file)
    assert back.keys() == given_arrays.keys()
    assert all(back[name].tobytes() == array.tobytes() for name, array in given_arrays.items())
    assert all(lies_well(array) for array in back.values())


def lies_well(array: np.ndarray) -> bool:
    return not array.flags.writeable and (array.size == 0 or array.ctypes.data % ALIGNMENT == 0)


def test_arrays_are_read_only_and_start_on_64_bytes(tmp_path: Path) -> None:
    odd = {f"a{size}": np.full(size, size, np.float32) for size in (1, 3, 15, 16, 17, 33)}
    write(tmp_path / "odd.safetensors", odd)
    for name, array in read(tmp_path / "odd.safetensors").items():
        assert lies_well(array)
        np.testing.assert_array_equal(array, odd[name])


def test_strided_arrays_are_written_as_they_look(tmp_path: Path) -> None:
    write(tmp_path / "w.safetensors", {"w": SOME["w"].T, "every other": SOME["n"][::2]})
    back = read(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(back["w"], SOME["w"].T)
    np.testing.assert_array_equal(back["every other"], [1, 3])


def test_a_file_is_replaced_whole_while_its_readers_keep_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    write(file, {"w": np.zeros(1000, np.float32)})
    before = read(file)["w"]
    write(file, {"w": np.ones(1000, np.float32)})
    assert before.sum() == 0
    assert read(file)["w"].sum() == 1000
    assert [path.name for path in tmp_path.iterdir()] == ["w.safetensors"]


@pytest.mark.parametrize("name", ["padding/64", "__metadata__"])
def test_a_name_that_the_file_keeps_for_itself_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="reserved"):
        write(tmp_path / "w.safetensors", {name: SOME["w"]})


@pytest.mark.parametrize("dtype", ["uint16", "uint64", ">f4", "complex64", "object"])
def test_a_type_that_cannot_be_written_is_refused_and_leaves_nothing_behind(dtype: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="float32, float64, int32"):
        write(tmp_path / "w.safetensors", {"w": SOME["w"].astype(dtype)})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotWritten, match="No such file"):
        write(tmp_path / "nowhere" / "w.safetensors", SOME)
    with pytest.raises(BadFile, match="No such file"):
        read(tmp_path / "w.safetensors")


def file_of(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"", "it is empty"),
        (b"\1\2\3", "header is longer than the file"),
        (b"\xff" * 64, "header is longer than the file"),
        (file_of(b"not json"), "not a JSON object"),
        (file_of(b"\xff\xfe{}"), "not a JSON object"),
        (file_of(b"[" * 100_000), "not a JSON object"),
        (file_of([1, 2]), "not a JSON object"),
        (file_of({"w": 3}), "an entry of its header lacks"),
        (file_of({"w": entry("BF16")}, b"\0" * 8), "an array is of type BF16; known are F32"),
        (file_of({"w": entry(["F32"])}, b"\0" * 8), "an entry of its header lacks"),
        (file_of({"w": entry(shape=[3])}, b"\0" * 8), "does not fit its place"),
        (file_of({"w": {"shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8), "an entry of its header lacks"),
        (file_of({"w": entry(shape=[-1, -2])}, b"\0" * 8), "does not fit its place"),
        (file_of({"w": entry(shape=[1.5])}, b"\0" * 8), "does not fit its place"),
        (file_of({"w": entry(shape="ab")}, b"\0" * 8), "an entry of its header lacks"),
        (file_of({"w": entry(offsets=[0])}, b"\0" * 8), "an entry of its header lacks"),
        (file_of({"w": entry(offsets=[8, 16])}, b"\0" * 16), "overlap or leave gaps"),
        (file_of({"w": entry(offsets=[-8, 0])}, b"\0" * 8), "overlap or leave gaps"),
        (file_of({"w": entry(), "v": entry()}, b"\0" * 8), "overlap or leave gaps"),
        (file_of({"w": entry()}, b"\0" * 7), "its arrays take 8 bytes, and it has 7"),
        (file_of({"w": entry()}, b"\0" * 9), "its arrays take 8 bytes, and it has 9"),
        (file_of({"w": entry(shape=[2**62, 2**62], offsets=[0, 2**126])}), "and it has 0"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_the_reason(contents: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.safetensors"
    file.write_bytes(contents)
    with pytest.raises(BadFile, match=reason) as raised:
        read(file)
    assert str(file) in str(raised.value)


@SAME_FOLDER
@given(st.data())
def test_a_file_cut_short_is_never_read(tmp_path: Path, data: st.DataObject) -> None:
    file = tmp_path / "w.safetensors"
    write(file, SOME)
    whole = file.read_bytes()
    file.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(BadFile):
        read(file)


@SAME_FOLDER
@given(st.data())
def test_a_file_with_a_changed_byte_is_read_or_refused_but_breaks_nothing(tmp_path: Path, data: st.DataObject) -> None:
    file = tmp_path / "w.safetensors"
    write(file, SOME)
    whole = bytearray(file.read_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(whole)
    try:
        found = read(file)
    except BadFile:
        return
    assert all(isinstance(array, np.ndarray) for array in found.values())

"""MNIST's idx files are read as they are published, and a wrong layout is one line that names the file."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fairlap.data.labelled.opening import data_named, items_in
from fairlap.errors import InvalidRequest
from fairlap.models.published_data.finding import images_at, labels_at
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_inputs

DRAWN = np.random.default_rng(0)
IMAGES, LABELS = DRAWN.integers(0, 256, (12, 5, 4), np.uint8), np.arange(12, dtype=np.uint8) % 3


def idx(array: np.ndarray) -> bytes:
    """Write it as Yann LeCun's page describes: two zeros, type 8, the number of axes, sizes, values."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(folder: Path, part: str, items: slice, end: str = "", separator: str = "-") -> Path:
    for name, array in (("images", IMAGES[items]), ("labels", LABELS[items])):
        content = idx(array)
        file = folder / f"{part}-{name}{separator}idx{array.ndim}-ubyte{end}"
        file.write_bytes(gzip.compress(content) if end else content)
    return folder / f"{part}-images{separator}idx3-ubyte{end}"


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("separator", ["-", "."])
def test_a_folder_has_a_part_to_learn_from_and_one_that_is_held_out(tmp_path: Path, end: str, separator: str) -> None:
    write(tmp_path, "train", slice(9), end, separator)
    write(tmp_path, "t10k", slice(9, None), end, separator)
    found = items_in(data_named(str(tmp_path)))
    assert found.inputs["image"].shape == (12, 1, 5, 4)
    assert found.inputs["image"] == pytest.approx(IMAGES[:, None] / np.float32(255))
    assert (found.labels.tolist(), found.classes) == (LABELS.tolist(), ("0", "1", "2"))
    assert found.held_out is not None
    assert np.flatnonzero(found.held_out).tolist() == [9, 10, 11]
    assert labels_in(str(tmp_path), ["top1"]).tolist() == LABELS[9:].tolist()


def test_a_file_of_images_is_an_input_and_one_of_labels_its_labels(tmp_path: Path) -> None:
    file = write(tmp_path, "t10k", slice(None))
    [inputs] = given_inputs(str(file), "")
    assert inputs[""] == pytest.approx(IMAGES[:, None] / np.float32(255))
    assert labels_in(str(tmp_path / "t10k-labels-idx1-ubyte"), ["top1"]).tolist() == LABELS.tolist()
    assert items_in(data_named(str(file))).held_out is None
    assert images_at(tmp_path / "none") is None
    assert labels_at(tmp_path) is not None


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def lengthened(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"0")


def of_floats(file: Path) -> None:
    file.write_bytes(b"\0\0\x0d" + file.read_bytes()[3:])


def of_one_axis(file: Path) -> None:
    file.write_bytes(idx(LABELS))


def huge(file: Path) -> None:
    file.write_bytes(struct.pack(">BBBB3I", 0, 0, 8, 3, 2**31, 2**31, 2**31))


def cut_in_its_header(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:6])


def without_labels(file: Path) -> None:
    file.with_name("train-labels-idx1-ubyte").unlink()


def with_other_labels(file: Path) -> None:
    file.with_name("train-labels-idx1-ubyte").write_bytes(idx(LABELS[:5]))


@pytest.mark.parametrize(
    "spoil",
    [cut, cut_in_its_header, lengthened, of_floats, of_one_axis, huge, without_labels, with_other_labels, Path.unlink],
)
def test_another_layout_is_refused_in_a_line_with_the_file(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    file = write(tmp_path, "train", slice(None))
    spoil(file)
    with pytest.raises(InvalidRequest) as refused:
        items_in(data_named(str(file)))
    assert refused.value.code == "E_DATA"
    assert "train-" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_compressed_file_that_is_not_complete_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, "train", slice(None), ".gz")
    for content in (file.read_bytes()[:-12], b"no gzip"):
        file.write_bytes(content)
        with pytest.raises(InvalidRequest) as refused:
            items_in(data_named(str(tmp_path)))
        assert file.name in str(refused.value)

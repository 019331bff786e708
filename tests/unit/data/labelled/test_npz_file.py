"""Arrays of a .npz file as items: names of inputs, classes and values, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from fairlap.data.labelled.npz_file import npz_items
from fairlap.errors import InvalidRequest

ROWS = np.arange(12.0).reshape(6, 2)
CLASSES = np.array([0, 1, 2, 0, 1, 2])


def written(folder: Path, **arrays: Any) -> Path:
    path = folder / "items.npz"
    np.savez(path, **arrays)
    return path


def test_whole_labels_are_the_numbers_of_classes(tmp_path: Path) -> None:
    found = npz_items(written(tmp_path, rows=ROWS, labels=CLASSES.astype(np.int64)), "")
    assert (found.classes, found.labels.tolist()) == (("0", "1", "2"), CLASSES.tolist())
    np.testing.assert_array_equal(found.inputs["rows"], ROWS)


def test_text_labels_are_classes_and_fractions_are_values(tmp_path: Path) -> None:
    assert npz_items(written(tmp_path, rows=ROWS, labels=np.array(["b", "a"] * 3)), "").classes == ("a", "b")
    for labels in (ROWS[:, 0], ROWS[:, :1].astype(np.float32)):
        found = npz_items(written(tmp_path, rows=ROWS, labels=labels), "")
        assert (found.classes, found.labels.shape) == ((), (6, 1))


def test_pixels_of_bytes_are_scaled_to_one(tmp_path: Path) -> None:
    images = np.full((6, 3, 4, 5), 255, np.uint8)
    found = npz_items(written(tmp_path, image=images, labels=CLASSES), "").inputs["image"]
    assert (found.dtype, found.max()) == (np.dtype(np.float32), 1.0)
    found = npz_items(written(tmp_path, image=images.astype(np.float64), labels=CLASSES), "").inputs["image"]
    assert (found.dtype, found.max()) == (np.dtype(np.float32), 255.0)


def test_a_single_input_takes_the_name_of_the_model_s(tmp_path: Path) -> None:
    found = npz_items(written(tmp_path, rows=ROWS, labels=CLASSES), "")
    assert list(found.named_for(["features"])) == ["features"]
    two = npz_items(written(tmp_path, a=ROWS, b=ROWS, labels=CLASSES), "")
    assert list(two.named_for(["features"])) == ["a", "b"]


def test_a_text_has_a_class_for_each_token_and_need_not_have_them_all(tmp_path: Path) -> None:
    tokens = np.array([[0, 3, 5], [1, 1, 5]] * 3)
    found = npz_items(written(tmp_path, ids=tokens, labels=tokens), "")
    assert (found.labels.shape, found.labels.dtype, len(found.classes)) == ((6, 3), np.dtype(np.int32), 6)
    np.testing.assert_array_equal(found.labels, tokens)


@pytest.mark.parametrize(
    ("arrays", "part"),
    [
        ({"rows": ROWS}, "no array 'labels'"),
        ({"labels": CLASSES}, "alone"),
        ({"rows": ROWS, "labels": CLASSES[:5]}, "6 items"),
        ({"rows": ROWS, "labels": CLASSES - 1}, "out of range"),
        ({"rows": ROWS, "labels": CLASSES * 2}, "1 has no item"),
        ({"rows": ROWS, "labels": CLASSES * 0}, "one class"),
        ({"rows": ROWS, "labels": ROWS}, "shape"),
        ({"rows": ROWS, "labels": ROWS.astype(int) - 1}, "out of range"),
        ({"rows": ROWS, "labels": ROWS.astype(int) + 10**9}, "out of range"),
        ({"rows": ROWS, "labels": CLASSES.astype(np.complex128)}, "complex128"),
        ({"rows": ROWS[:, 0], "labels": CLASSES}, "shape"),
        ({"rows": ROWS.astype("U"), "labels": CLASSES}, "rows"),
        ({"rows": np.where(ROWS == 3, np.nan, ROWS), "labels": CLASSES}, "not finite"),
        ({"rows": ROWS, "labels": np.where(CLASSES, 0.5, np.inf)}, "not finite"),
        ({"rows": ROWS[:0], "labels": CLASSES[:0]}, "no items"),
        ({"rows": ROWS[:4], "labels": CLASSES[:4]}, "4 items"),
        ({"rows": ROWS, "labels": np.array([object()] * 6)}, "numpy.savez"),
    ],
)
def test_arrays_that_cannot_be_learnt_are_refused(arrays: dict[str, Any], part: str, tmp_path: Path) -> None:
    path = written(tmp_path, **arrays)
    with pytest.raises(InvalidRequest) as raised:
        npz_items(path, "")
    assert raised.value.code == "E_DATA"
    assert part in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no archive"])
def test_a_damaged_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "items.npz"
    path.write_bytes(content)
    with pytest.raises(InvalidRequest) as raised:
        npz_items(path, "")
    assert raised.value.code == "E_DATA"


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.npz"
    np.savez_compressed(path, rows=np.random.default_rng(0).random((400, 30)), labels=np.arange(400) % 3)
    content = bytearray(path.read_bytes())
    content[300:320] = bytes(20)
    path.write_bytes(content)
    with pytest.raises(InvalidRequest) as refused:
        npz_items(path, "")
    assert refused.value.code == "E_DATA"


def test_a_member_that_is_no_array_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, rows=ROWS)
    with ZipFile(path, "a") as archive:
        archive.writestr("labels.npy", b"abc")
    with pytest.raises(InvalidRequest) as refused:
        npz_items(path, "")
    assert refused.value.code == "E_DATA"


@pytest.mark.parametrize(
    ("labels", "part"), [([-1, 0, 1, -1, 0, 1], "-1 is none"), ([0, 2, 0, 2, 0, 2], "1 has no item")]
)
def test_labels_out_of_range_are_named(labels: list[int], part: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=part):
        npz_items(written(tmp_path, rows=ROWS, labels=np.array(labels)), "")


def test_items_without_features_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        npz_items(written(tmp_path, rows=np.zeros((6, 0)), labels=CLASSES), "")
    assert refused.value.code == "E_DATA"

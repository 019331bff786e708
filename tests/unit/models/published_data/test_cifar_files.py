"""CIFAR is read in both forms in which it is published; pickles of anything else run nothing and are refused."""

from __future__ import annotations

import io
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from fairlap.data.labelled.opening import data_named, items_in
from fairlap.errors import InvalidRequest
from fairlap.models.published_data.finding import images_at
from fairlap.models.sources.given_data.labels import labels_in

DRAWN = np.random.default_rng(0)
PIXELS, LABELS = DRAWN.integers(0, 256, (12, 3072), np.uint8), np.arange(12) % 3
NAMES = ("airplane", "automobile", "bird")


PlainPickler: Any = pickle._Pickler  # the one in Python, whose parts can be replaced


class _OfPython2(PlainPickler):  # type: ignore[misc]
    """Writes texts and bytes as Python 2 did, which had one type for both."""

    dispatch: ClassVar[dict[type, Any]] = dict(PlainPickler.dispatch)

    def save_text(self, found: str | bytes) -> None:
        content = found.encode() if isinstance(found, str) else found
        short = len(content) < 256
        self.write((b"U" + bytes([len(content)]) if short else b"T" + struct.pack("<i", len(content))) + content)
        self.memoize(found)

    dispatch[str] = dispatch[bytes] = save_text


def of_python_2(found: object) -> bytes:
    """Pickle as the published files were, by Python 2 and the NumPy of then."""
    file = io.BytesIO()
    _OfPython2(file, 2).dump(found)
    return file.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def python_10(folder: Path) -> Path:
    for number, part in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        own = slice(2 * number, 2 * number + 2)
        content = {b"data": PIXELS[own], b"labels": LABELS[own].tolist(), b"batch_label": 1}
        (folder / part).write_bytes(of_python_2(content))
    (folder / "batches.meta").write_bytes(of_python_2({"label_names": list(NAMES), "num_vis": 3072}))
    return folder


def binary_10(folder: Path) -> Path:
    for number, part in enumerate([*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"]):
        own = slice(2 * number, 2 * number + 2)
        records = np.concatenate([LABELS[own, None].astype(np.uint8), PIXELS[own]], axis=1)
        (folder / part).write_bytes(records.tobytes())
    (folder / "batches.meta.txt").write_text("\n".join(NAMES) + "\n")
    return folder


def python_100(folder: Path) -> Path:
    for part, own in (("train", slice(10)), ("test", slice(10, None))):
        fine = LABELS[own].tolist()
        content = {b"data": PIXELS[own], b"fine_labels": fine, b"coarse_labels": [9] * len(fine)}
        (folder / part).write_bytes(of_python_2(content))
    (folder / "meta").write_bytes(of_python_2({"fine_label_names": list(NAMES), "coarse_label_names": ["x"]}))
    return folder


def binary_100(folder: Path) -> Path:
    for part, own in (("train.bin", slice(10)), ("test.bin", slice(10, None))):
        fine = LABELS[own, None].astype(np.uint8)
        (folder / part).write_bytes(np.concatenate([fine * 0 + 9, fine, PIXELS[own]], axis=1).tobytes())
    (folder / "fine_label_names.txt").write_text("\n".join(NAMES))
    return folder


def saved_again(protocol: int) -> Callable[[Path], Path]:
    """As Python 3 pickles what it has read of the published files."""

    def written(folder: Path) -> Path:
        for file in python_10(folder).iterdir():
            with file.open("rb") as opened:
                found = pickle.load(opened, encoding="bytes")
            file.write_bytes(pickle.dumps(found, protocol))
        return folder

    return written


@pytest.mark.slow_but("binary_10", "python_100")
@pytest.mark.parametrize("written", [python_10, binary_10, python_100, binary_100, *map(saved_again, range(6))])
def test_images_classes_and_the_test_part_are_those_of_the_files(
    tmp_path: Path, written: Callable[[Path], Path]
) -> None:
    folder = written(tmp_path)
    found = items_in(data_named(str(folder)))
    assert found.inputs["image"] == pytest.approx(PIXELS.reshape(-1, 3, 32, 32) / np.float32(255))
    assert (found.labels.tolist(), found.classes) == (LABELS.tolist(), NAMES)
    assert found.held_out is not None
    assert np.flatnonzero(found.held_out).tolist() == [10, 11]
    images = images_at(folder)
    assert images is not None
    assert images.shape == (2, 3, 32, 32)
    assert labels_in(str(folder), ["top1"]).tolist() == LABELS[10:].tolist()


@pytest.mark.parametrize(("written", "name"), [(python_10, "test_batch"), (binary_10, "test_batch.bin")])
def test_one_file_alone_is_read_without_the_others(tmp_path: Path, written: Callable[[Path], Path], name: str) -> None:
    written(tmp_path)
    for other in tmp_path.iterdir():
        if other.name != name:
            other.unlink()
    images = images_at(tmp_path / name)
    assert images is not None
    assert images.shape == (2, 3, 32, 32)
    assert labels_in(str(tmp_path / name), ["top1"]).tolist() == LABELS[10:].tolist()


class Attack:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("attacked",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({b"data": Attack(), b"labels": [1]}),
        pickle.dumps({b"data": print, b"labels": [1]}),
        of_python_2({b"data": np.zeros((2, 9), np.uint8), b"labels": [1, 2]}),
        of_python_2({b"data": PIXELS[:2].astype(float), b"labels": [1, 2]}),
        of_python_2({b"data": PIXELS[:2], b"labels": [1]}),
        of_python_2({b"data": PIXELS[:2], b"labels": ["a", "b"]}),
        of_python_2({b"data": PIXELS[:2], b"labels": [1, 999]}),
        of_python_2({b"data": PIXELS[:2]}),
        pickle.dumps([1, 2]),
        b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00utf-7\x86R.",
        b"",
        b"no pickle",
    ],
)
def test_other_pickles_run_nothing_and_are_refused_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    python_10(tmp_path)
    (tmp_path / "data_batch_3").write_bytes(content)
    with pytest.raises(InvalidRequest) as refused:
        items_in(data_named(str(tmp_path)))
    assert refused.value.code == "E_DATA"
    assert str(tmp_path / "data_batch_3") in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "attacked").exists()


def test_records_that_are_cut_and_names_that_are_too_few_are_refused(tmp_path: Path) -> None:
    binary_10(tmp_path)
    (tmp_path / "batches.meta.txt").write_text("airplane\n")
    with pytest.raises(InvalidRequest) as refused:
        items_in(data_named(str(tmp_path)))
    assert "batches.meta.txt" in str(refused.value)
    (tmp_path / "data_batch_1.bin").write_bytes(bytes(3000))
    with pytest.raises(InvalidRequest) as refused:
        items_in(data_named(str(tmp_path)))
    assert "data_batch_1.bin" in str(refused.value)

"""Items on disk: found in each form, read whole and in parts, recognised whichever library decoded them."""

from __future__ import annotations

import io
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import stored_data
from fairlap.errors import InvalidRequest
from fairlap.models.sources.stored_items.finding import stored_items
from fairlap.models.sources.stored_items.parquet_rows import parquet_samples
from fairlap.models.sources.stored_items.reading import reference_items
from fairlap.models.sources.stored_items.reference_items import grid_means
from fairlap.models.sources.stored_items.tar_samples import tar_samples
from fairlap.request.fields.data.stored_data import stored_data_in
from PIL import Image

ITEMS = 22


def found(path: Path, settings: str = ":batch=4:size=32"):  # type: ignore[no-untyped-def]
    return stored_items(stored_data_in(f"data:{path}{settings}"))


@pytest.mark.parametrize("write", [stored_data.image_folder, stored_data.tar, stored_data.parquet])
def test_images_are_found_with_their_labels_in_each_form(write: Callable[[Path], Path], tmp_path: Path) -> None:
    if write is stored_data.parquet:
        pytest.importorskip("pyarrow")
    items = found(write(tmp_path / f"data.{write.__name__}"))
    assert (items.items, items.batch, items.shape, items.dtype) == (ITEMS, 4, (32, 32, 3), "uint8")
    labels = reference_items(items).labels
    assert Counter(labels.tolist()) == {0: 8, 1: 7, 2: 7}


def test_rows_are_found_as_they_are(tmp_path: Path) -> None:
    items = found(stored_data.rows(tmp_path / "rows"), ":batch=4")
    assert (items.items, items.shape, items.dtype, items.bytes_each) == (ITEMS, (48,), "float32", 192)
    with pytest.raises(InvalidRequest):
        found(tmp_path / "rows", ":size=32")


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_parts_of_a_tar_are_together_all_of_it_once(parts: int, tmp_path: Path) -> None:
    path = str(stored_data.tar(tmp_path / "data.tar"))
    by_hand = Counter((stored_data.jpeg(number), number % stored_data.CLASSES) for number in range(ITEMS))
    assert Counter(sample for part in range(parts) for sample in tar_samples(path, part, parts)) == by_hand


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_the_parts_of_parquet_are_together_all_of_it_once(parts: int, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = str(stored_data.parquet(tmp_path / "data.parquet"))
    by_hand = Counter((stored_data.jpeg(number), number % stored_data.CLASSES) for number in range(ITEMS))
    columns = ("image", "label")
    assert Counter(each for part in range(parts) for each in parquet_samples(path, columns, 4, part, parts)) == by_hand


def test_a_grid_of_means_is_that_of_blocks() -> None:
    pixels = np.random.default_rng(0).uniform(0, 255, (2, 32, 16, 3)).astype(np.float32)
    by_hand = pixels.reshape(2, 8, 4, 8, 2, 3).mean(axis=(2, 4)).reshape(2, -1)
    np.testing.assert_allclose(grid_means(pixels), by_hand, rtol=1e-5)


def test_an_image_is_nearer_to_itself_decoded_otherwise_than_to_any_other(tmp_path: Path) -> None:
    reference = reference_items(found(stored_data.image_folder(tmp_path / "photos")))
    files = sorted((tmp_path / "photos").rglob("*.jpg"))
    for number, file in enumerate(files):
        with Image.open(file) as opened:
            opened.draft("RGB", (64, 48))  # another decoder of the library: of half the size
            other = np.asarray(opened.resize((32, 32), Image.Resampling.BILINEAR), np.float32)
        distances = np.abs(reference.marks - grid_means(other[None])).mean(axis=1)
        assert int(np.argmin(distances)) == number
        assert np.sort(distances)[1] > 5 * distances[number]


def _empty_class(folder: Path) -> Path:
    (folder / "a").mkdir(parents=True)
    return folder


def _stray_file(folder: Path) -> Path:
    (stored_data.image_folder(folder) / "class-0/notes.txt").write_text("x")
    return folder


def _text_as_jpeg(folder: Path) -> Path:
    (stored_data.image_folder(folder) / "class-0/bad.jpg").write_text("x")
    return folder


def _cmyk(folder: Path) -> Path:
    Image.new("CMYK", (8, 8)).save(stored_data.image_folder(folder) / "class-0/ink.jpg")
    return folder


def _without_labels(path: Path) -> Path:
    with tarfile.open(path.with_suffix(".tar"), "w") as archive:
        member = tarfile.TarInfo("1.jpg")
        archive.addfile(member, io.BytesIO())
    return path.with_suffix(".tar")


def _compressed(path: Path) -> Path:
    path.with_suffix(".tar").write_bytes(b"\x1f\x8b" + bytes(600))
    return path.with_suffix(".tar")


def _labels_too_few(folder: Path) -> Path:
    np.save(stored_data.rows(folder) / "labels.npy", np.zeros(3, np.int64))
    return folder


def _nothing(folder: Path) -> Path:
    return folder / "nothing"


@pytest.mark.parametrize(
    "write",
    [_empty_class, _stray_file, _text_as_jpeg, _cmyk, _without_labels, _compressed, _labels_too_few, _nothing],
)
def test_data_that_pipelines_would_read_differently_are_refused(write: Callable[[Path], Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        reference_items(found(write(tmp_path / "data"), ":batch=4"))
    assert refused.value.code == "E_DATA"

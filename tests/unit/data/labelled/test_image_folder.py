"""A folder of images as items: one sub-folder for each class, one size for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.data.labelled.image_folder import image_items
from fairlap.errors import InvalidRequest

Image: Any = pytest.importorskip("PIL.Image", reason="`make test` installs it and runs this")

CLASSES = ("cat", "ant")


def save(path: Path, mode: str = "L", size: tuple[int, int] = (5, 4), value: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = value if mode in ("L", "1") else (value, 0, 255) if mode == "RGB" else (value, 0, 255, 9)
    Image.new(mode, size, colour).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for place, name in enumerate(CLASSES):
        for number in range(3):
            save(tmp_path / "images" / name / f"{number}.png", value=51 * (3 * place + number))
    return tmp_path / "images"


def refused(folder: Path) -> str:
    with pytest.raises(InvalidRequest) as raised:
        image_items(folder, "")
    assert raised.value.code == "E_DATA"
    assert str(folder) in str(raised.value)
    return str(raised.value)


def test_classes_are_the_folders_in_order_and_pixels_are_from_0_to_1(folder: Path) -> None:
    (folder / ".hidden").write_text("left out")
    found = image_items(folder, "")
    assert found.classes == ("ant", "cat")
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.inputs["image"].shape == (6, 1, 4, 5)
    assert found.inputs["image"].dtype == np.float32
    np.testing.assert_allclose(found.inputs["image"][:, 0, 0, 0], [0.6, 0.8, 1.0, 0.0, 0.2, 0.4])


def test_colours_are_channels(folder: Path) -> None:
    for file in folder.glob("*/*.png"):
        save(file, "RGB", value=51)
    found = image_items(folder, "").inputs["image"]
    assert found.shape == (6, 3, 4, 5)
    np.testing.assert_allclose(found[0, :, 0, 0], [0.2, 0.0, 1.0])


def test_images_of_one_bit_are_greyscale(folder: Path) -> None:
    for file in folder.glob("*/*.png"):
        save(file, "1", value=1)
    assert set(image_items(folder, "").inputs["image"].ravel()) == {1.0}


@pytest.mark.parametrize("transparent", [False, True])
def test_a_palette_and_transparency_become_the_colours_that_pillow_finds(
    transparent: bool, folder: Path, recwarn: pytest.WarningsRecorder
) -> None:
    first, *others = sorted(folder.glob("*/*.png"))
    for file in others:
        save(file, "RGBA", value=102)
    palette = Image.new("P", (5, 4), 1)
    palette.putpalette([0, 0, 0, 51, 0, 255])
    palette.save(first, **({"transparency": b"\0\0"} if transparent else {}))
    found = image_items(folder, "").inputs["image"]
    assert found.shape == (6, 3, 4, 5)
    np.testing.assert_allclose(found[:, :, 0, 0], [[0.2, 0.0, 1.0], *[[0.4, 0.0, 1.0]] * 5])
    assert not recwarn.list


def test_greyscale_with_transparency_is_greyscale(folder: Path) -> None:
    for file in folder.glob("*/*.png"):
        Image.new("LA", (5, 4), (51, 9)).save(file)
    found = image_items(folder, "").inputs["image"]
    assert found.shape == (6, 1, 4, 5)
    np.testing.assert_allclose(found, 0.2)


@pytest.mark.parametrize(("mode", "size"), [("L", (5, 5)), ("RGB", (5, 4))])
def test_images_of_two_sizes_are_refused(mode: str, size: tuple[int, int], folder: Path) -> None:
    save(folder / "cat" / "other.png", mode, size)
    assert "other.png" in refused(folder)


def test_what_is_not_an_image_is_refused_by_name(folder: Path) -> None:
    (folder / "cat" / "notes.txt").write_text("not an image")
    assert "notes.txt" in refused(folder)
    (folder / "cat" / "notes.txt").unlink()
    whole = (folder / "cat" / "0.png").read_bytes()
    (folder / "cat" / "cut.png").write_bytes(whole[: len(whole) // 2])
    assert "cut.png" in refused(folder)


def test_other_modes_and_folders_in_folders_are_refused(folder: Path) -> None:
    Image.new("CMYK", (5, 4)).save(folder / "cat" / "print.tif")
    assert "CMYK" in refused(folder)
    (folder / "cat" / "print.tif").unlink()
    (folder / "cat" / "more").mkdir()
    assert "more" in refused(folder)


def test_a_folder_without_classes_or_images_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "dog").mkdir()
    assert "dog" in refused(folder)
    (folder / "dog").rmdir()
    save(folder / "loose.png")
    assert "loose.png" in refused(folder)
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty")


def test_one_class_is_refused(tmp_path: Path) -> None:
    for number in range(6):
        save(tmp_path / "images" / "cat" / f"{number}.png")
    assert "one class" in refused(tmp_path / "images")

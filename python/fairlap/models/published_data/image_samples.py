"""Images of one size in a WebDataset tar, or in a folder with one sub-folder for each class, read with Pillow."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fairlap.models.published_data.published_images import Array, PublishedImages, refuse
from fairlap.models.sources.stored_items.tar_samples import (
    IMAGE_SUFFIXES,
    LABEL_SUFFIX,
    key_and_suffix,
    tar_samples,
)

_SUFFIXES = tuple(f".{each}" for each in IMAGE_SUFFIXES)


def is_tar(path: Path) -> bool:
    return path.suffix.lower() == ".tar" and path.is_file()


def holds_images(folder: Path) -> bool:
    """Whether it has a sub-folder with an image."""
    folders = (each for each in _visible(folder) if each.is_dir()) if folder.is_dir() else ()
    return any(file.suffix.lower() in _SUFFIXES for each in folders for file in _visible(each))


def tar_images(path: Path) -> PublishedImages:
    """Read samples of an image and a ``.cls`` with the number of its class."""
    _require_pillow(path)
    _require_samples(path)
    try:
        samples = list(tar_samples(str(path)))
    except tarfile.TarError as error:
        raise refuse(path, f"it cannot be read as an uncompressed tar: {error}") from None
    except ValueError:
        raise refuse(path, f"a .{LABEL_SUFFIX} of it is not the number of a class") from None
    labels = np.array([label for _, label in samples], np.int64)
    if labels.min() < 0:
        raise refuse(path, f"a .{LABEL_SUFFIX} of it is below 0")
    images = _pixels((f"{path}, sample {number + 1}", encoded) for number, (encoded, _) in enumerate(samples))
    return PublishedImages(images, labels.astype(np.int32), tuple(map(str, range(int(labels.max()) + 1))))


def folder_images(folder: Path) -> PublishedImages:
    _require_pillow(folder)
    classes = [each for each in _visible(folder) if each.is_dir()]
    files = [(file, number) for number, each in enumerate(classes) for file in _visible(each)]
    if other := next((file for file, _ in files if file.suffix.lower() not in _SUFFIXES), None):
        raise refuse(other, "it is not a JPEG or PNG file; the folder of a class has images alone")
    images = _pixels((str(file), file.read_bytes()) for file, _ in files)
    labels = np.array([number for _, number in files], np.int32)
    return PublishedImages(images, labels, tuple(each.name for each in classes))


def _require_samples(path: Path) -> None:
    """Every sample has one image and its class."""
    found: dict[str, set[str]] = {}
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if member.isfile():
                    key, _, suffix = key_and_suffix(member.name)
                    found.setdefault(key, set()).add(suffix)
    except tarfile.TarError as error:
        raise refuse(path, f"it cannot be read as an uncompressed tar: {error}") from None
    if not found:
        raise refuse(path, "it has no samples")
    for key, suffixes in found.items():
        if len(suffixes & set(IMAGE_SUFFIXES)) != 1 or LABEL_SUFFIX not in suffixes:
            raise refuse(path, f"the sample {key} needs one .jpg or .png and a .{LABEL_SUFFIX}")


def _pixels(encoded: Iterable[tuple[str, bytes]]) -> Array:
    """Decode to one array: greyscale has one channel, everything else becomes RGB."""
    import PIL.Image

    found: list[Array] = []
    first = ""
    for name, content in encoded:
        try:
            with PIL.Image.open(io.BytesIO(content)) as image:
                pixels = np.asarray(image if image.getbands() == ("L",) else image.convert("RGB"))
        except (OSError, SyntaxError, ValueError, EOFError, PIL.Image.DecompressionBombError):
            raise refuse(Path(name), "it is not an image that can be read") from None
        pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
        first = first or name
        if found and pixels.shape != found[0].shape:
            raise refuse(Path(name), f"it has {_size(pixels)}, and {first} has {_size(found[0])}; give one size")
        found.append(pixels)
    return np.stack(found)


def _size(pixels: Array) -> str:
    channels, height, width = pixels.shape
    return f"{width} by {height} pixels {'in grey' if channels == 1 else 'in colour'}"


def _require_pillow(path: Path) -> None:
    if find_spec("PIL") is None:
        raise refuse(path, "images are read with Pillow, which is not installed: pip install 'fairlap[images]'")


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))

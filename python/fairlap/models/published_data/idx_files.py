"""The idx files of MNIST, Fashion-MNIST and EMNIST, as they are or compressed by gzip.

A magic number with the type and the number of dimensions, the dimensions as big-endian numbers of four bytes, and then
the values row by row.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from fairlap.models.published_data.published_images import Array, PublishedImages, joined, refuse

_BYTES = 8  # the type of unsigned bytes
IMAGE_AXES, LABEL_AXES = 3, 1
_MOST_BYTES = 2**30
_PARTS = (("train", False), ("t10k", True), ("test", True))
_SEPARATORS = ("-", ".")  # `train-images-idx3-ubyte`, and `train-images.idx3-ubyte`


def is_idx(path: Path) -> bool:
    return "-ubyte" in path.name and path.is_file()


def holds_idx(folder: Path) -> bool:
    return folder.is_dir() and any(_images_of(folder, part) for part, _ in _PARTS)


def idx_folder(folder: Path) -> PublishedImages:
    """Read all parts that the folder has, of which the test part is held out."""
    found, test = [], []
    for part, is_test in _PARTS:
        if file := _images_of(folder, part):
            found.append(idx_images(file))
            test.append(is_test)
    return joined(_with_classes_of_all(found), test)


def idx_images(file: Path) -> PublishedImages:
    """Read a file of images, and the file of labels that is named like it; or the other way round."""
    images_file, labels_file = _both(file)
    images, labels = read_idx(images_file, IMAGE_AXES), read_idx(labels_file, LABEL_AXES)
    if len(images) != len(labels):
        raise refuse(labels_file, f"it has {len(labels):,} labels, and {images_file.name} has {len(images):,} images")
    classes = tuple(map(str, range(int(labels.max(initial=0)) + 1)))
    return PublishedImages(images[:, None], labels.astype(np.int32), classes)


def read_idx(file: Path, axes: int) -> Array:
    """Read an array of bytes with so many axes."""
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
            head = opened.read(4)
            if len(head) < 4 or head[:2] != b"\0\0" or head[2] != _BYTES or head[3] != axes:
                kind = "images" if axes == IMAGE_AXES else "labels"
                raise refuse(file, f"it is not an idx file of {kind}: it begins with {head.hex() or 'nothing'}")
            sizes = opened.read(4 * axes)
            if len(sizes) < 4 * axes:
                raise refuse(file, "it ends within its header")
            shape = tuple(np.frombuffer(sizes, ">u4").astype(int).tolist())
            size = math.prod(shape)
            if not 0 < size <= _MOST_BYTES:
                raise refuse(file, f"its header gives the shape {list(shape)}")
            values = opened.read(size + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise refuse(file, "it is not complete, or not compressed by gzip") from None
    if len(values) != size:
        more = "more" if len(values) > size else f"{len(values):,}"
        raise refuse(file, f"its header announces {size:,} bytes of values, and it has {more}")
    return np.frombuffer(values, np.uint8).reshape(shape)


def _with_classes_of_all(parts: list[PublishedImages]) -> list[PublishedImages]:
    classes = max((part.classes for part in parts), key=len)
    return [PublishedImages(part.images, part.labels, classes) for part in parts]


def _images_of(folder: Path, part: str) -> Path | None:
    names = [f"{part}-images{separator}idx3-ubyte{end}" for separator in _SEPARATORS for end in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _both(file: Path) -> tuple[Path, Path]:
    names = (("images", "idx3"), ("labels", "idx1"))
    for (own, own_type), (other, other_type) in (names, names[::-1]):
        if own in file.name and own_type in file.name:
            name = file.name.replace(own, other).replace(own_type, other_type)
            beside = file.with_name(name)
            if not beside.is_file():
                beside = next((each for each in _other_endings(beside) if each.is_file()), beside)
            if not beside.is_file():
                raise refuse(file, f"{name} with the {other} is not beside it")
            return (file, beside) if own == "images" else (beside, file)
    raise refuse(file, "its name is not of the form train-images-idx3-ubyte or train-labels-idx1-ubyte")


def _other_endings(file: Path) -> tuple[Path, ...]:
    return (file.with_name(file.name.removesuffix(".gz")), file.with_name(f"{file.name}.gz"))

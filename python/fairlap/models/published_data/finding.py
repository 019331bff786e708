"""Find the reader of a published layout by the names of its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fairlap.models.published_data.cifar_files import cifar_arrays, cifar_file, cifar_folder, holds_cifar, is_cifar
from fairlap.models.published_data.idx_files import (
    IMAGE_AXES,
    LABEL_AXES,
    holds_idx,
    idx_folder,
    idx_images,
    is_idx,
    read_idx,
)
from fairlap.models.published_data.image_samples import folder_images, holds_images, is_tar, tar_images
from fairlap.models.published_data.published_images import Array, PublishedImages, pixels_of

Reader = Callable[[Path], PublishedImages]

_LEARNT: tuple[tuple[Callable[[Path], bool], Reader], ...] = (
    (holds_idx, idx_folder),
    (holds_cifar, cifar_folder),
    (is_idx, idx_images),
    (is_cifar, cifar_file),
    (is_tar, tar_images),
)
_OTHERS: tuple[tuple[Callable[[Path], bool], Reader], ...] = ((holds_images, folder_images),)


def reader_of(path: Path) -> Reader | None:
    """None for files and folders in no layout that is known here, and for folders of images."""
    return next((read for fits, read in _LEARNT if fits(path)), None)


def images_at(path: Path) -> Array | None:
    """Read pixels from 0 to 1 of the test part, from this file alone where it is one. None in no known layout."""
    if is_idx(path):
        return pixels_of(read_idx(path, IMAGE_AXES)[:, None])
    if is_cifar(path):
        return pixels_of(cifar_arrays(path)[0])
    found = _test_part(path)
    return None if found is None else pixels_of(found.images)


def labels_at(path: Path) -> Array | None:
    """Read the numbers of the classes of the same items."""
    if is_idx(path):
        return read_idx(path, LABEL_AXES).astype(np.int32)
    if is_cifar(path):
        return cifar_arrays(path)[1].astype(np.int32)
    found = _test_part(path)
    return None if found is None else found.labels


def _test_part(path: Path) -> PublishedImages | None:
    read = next((read for fits, read in (*_LEARNT, *_OTHERS) if fits(path)), None)
    return None if read is None else read(path).test_part()

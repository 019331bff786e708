"""Find the reader of a published layout by the names of its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from fairlap.models.array_files.stored_rows import stored
from fairlap.models.published_data.boxed_photos import boxed_photos, has_boxes
from fairlap.models.published_data.cifar_files import cifar_arrays, cifar_file, cifar_folder, holds_cifar, is_cifar
from fairlap.models.published_data.hugging_face_folders import holds_hugging_face, hugging_face_photos
from fairlap.models.published_data.idx_files import (
    IMAGE_AXES,
    LABEL_AXES,
    holds_idx,
    idx_folder,
    idx_images,
    is_idx,
    read_idx,
)
from fairlap.models.published_data.image_samples import folder_photos, holds_images, is_tar, tar_photos
from fairlap.models.published_data.photos import ImageSize, Photos
from fairlap.models.published_data.published_images import Array, PublishedImages, pixels_of

Reader = Callable[[Path], PublishedImages]
Found = TypeVar("Found")

_IMAGES: tuple[tuple[Callable[[Path], bool], Reader], ...] = (
    (holds_idx, idx_folder),
    (holds_cifar, cifar_folder),
    (is_idx, idx_images),
    (is_cifar, cifar_file),
)
_LEARNT_PHOTOS = ((is_tar, tar_photos), (holds_hugging_face, hugging_face_photos))
_PHOTOS = (*_LEARNT_PHOTOS, (holds_images, folder_photos))


def reader_of(path: Path) -> Reader | None:
    """None for files and folders in no layout that is known here, and for folders of images."""
    if (read := _of(path, _IMAGES)) is not None:
        return read
    find = _of(path, _LEARNT_PHOTOS)
    return None if find is None else lambda path: find(path).published()


def images_at(path: Path, size: ImageSize | None = None) -> Array | None:
    """Read pixels from 0 to 1 of the test part, from this file alone where it is one. None in no known layout.

    Photos are brought to the ``size``.
    """
    if is_idx(path):
        return pixels_of(read_idx(path, IMAGE_AXES)[:, None])
    if is_cifar(path):
        return pixels_of(cifar_arrays(path)[0])
    if (read := _of(path, _IMAGES)) is not None:
        return pixels_of(read(path).test_part().images)
    photos = _photos_at(path, size)
    return None if photos is None else stored(map(pixels_of, photos.decoded(size)))


def labels_at(path: Path) -> Array | None:
    """Read what is right of the same items: numbers of classes, or boxes in photos."""
    if is_idx(path):
        return read_idx(path, LABEL_AXES).astype(np.int32)
    if is_cifar(path):
        return cifar_arrays(path)[1].astype(np.int32)
    if (read := _of(path, _IMAGES)) is not None:
        return read(path).test_part().labels
    photos = _photos_at(path, None)
    return None if photos is None else photos.labels


def _photos_at(path: Path, size: ImageSize | None) -> Photos | None:
    """Find the test part, of which nothing is decoded yet."""
    if has_boxes(path):
        return boxed_photos(path, size)
    find = _of(path, _PHOTOS)
    return None if find is None else find(path).test_part()


def _of(path: Path, among: Sequence[tuple[Callable[[Path], bool], Found]]) -> Found | None:
    return next((found for fits, found in among if fits(path)), None)

"""Images in a WebDataset tar, or in a folder with one sub-folder for each class, as ImageNet has them."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fairlap.models.published_data.photos import Encoded, Photos, require_pillow
from fairlap.models.published_data.published_images import refuse
from fairlap.models.sources.stored_items.tar_samples import (
    IMAGE_SUFFIXES,
    LABEL_SUFFIX,
    content_of_member,
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


def tar_photos(path: Path) -> Photos:
    """Find samples of an image and a ``.cls`` with the number of its class."""
    require_pillow(path)
    labels = np.array(_labels_in_tar(path), np.int64)
    if labels.min() < 0:
        raise refuse(path, f"a .{LABEL_SUFFIX} of it is below 0")

    def encoded() -> Iterator[Encoded]:
        return ((f"{path}, sample {number}", content) for number, (content, _) in enumerate(tar_samples(str(path)), 1))

    return Photos(encoded, labels.astype(np.int32), tuple(map(str, range(int(labels.max()) + 1))))


def folder_photos(folder: Path) -> Photos:
    require_pillow(folder)
    classes = [each for each in _visible(folder) if each.is_dir()]
    files = [(file, number) for number, each in enumerate(classes) for file in _visible(each)]
    if other := next((file for file, _ in files if file.suffix.lower() not in _SUFFIXES), None):
        raise refuse(other, "it is not a JPEG or PNG file; the folder of a class has images alone")
    labels = np.array([number for _, number in files], np.int32)
    return Photos(
        lambda: ((str(file), file.read_bytes()) for file, _ in files), labels, tuple(each.name for each in classes)
    )


def _labels_in_tar(path: Path) -> list[int]:
    """Of every sample, which has one image and its class. Images are not read."""
    found: dict[str, set[str]] = {}
    labels: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if not member.isfile():
                    continue
                key, _, suffix = key_and_suffix(member.name)
                found.setdefault(key, set()).add(suffix)
                if suffix == LABEL_SUFFIX:
                    labels[key] = content_of_member(archive, member)
    except tarfile.TarError as error:
        raise refuse(path, f"it cannot be read as an uncompressed tar: {error}") from None
    if not found:
        raise refuse(path, "it has no samples")
    for key, suffixes in found.items():
        if len(suffixes & set(IMAGE_SUFFIXES)) != 1 or LABEL_SUFFIX not in suffixes:
            raise refuse(path, f"the sample {key} needs one .jpg or .png and a .{LABEL_SUFFIX}")
    try:
        return [int(labels[key]) for key in found]
    except ValueError:
        raise refuse(path, f"a .{LABEL_SUFFIX} of it is not the number of a class") from None


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))

"""Read a WebDataset tar from its beginning to its end: samples are neighbouring members that share a key."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath

IMAGE_SUFFIXES = ("jpg", "jpeg", "png")
LABEL_SUFFIX = "cls"


def tar_samples(path: str, part: int = 0, parts: int = 1) -> Iterator[tuple[bytes, int]]:
    """Yield the encoded image and the label of each sample, or of each ``parts``-th one from ``part`` on.

    Images of other samples are skipped without reading them.
    """
    key, image, label, number = "", None, None, -1
    with tarfile.open(path, "r:") as archive:
        for member in archive:
            archive.members = []  # type: ignore[attr-defined]  # or every header that was read is kept
            if not member.isfile():
                continue
            own, _, suffix = key_and_suffix(member.name)
            if own != key:
                key, image, label, number = own, None, None, number + 1
            if number % parts != part:
                continue
            if suffix in IMAGE_SUFFIXES:
                image = content_of_member(archive, member)
            elif suffix == LABEL_SUFFIX:
                label = int(content_of_member(archive, member))
            if image is not None and label is not None:
                yield image, label
                image = label = None


def key_and_suffix(name: str) -> tuple[str, str, str]:
    """Split at the first point of the file's name, as WebDataset does."""
    path = PurePosixPath(name)
    stem, point, suffix = path.name.partition(".")
    return str(path.parent / stem), point, suffix.lower()


def content_of_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None  # it is a file
    return file.read()

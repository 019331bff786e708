"""Photos with boxes, as COCO and Open Images publish them: a file of annotations, and a folder of images near it.

The labels of a photo are rows of left, top, width, height, category and whether it is a crowd, in the pixels of the
size that the photo is brought to; rows of NaN fill up photos that have fewer than others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

import msgspec
import numpy as np

from fairlap.models.metrics.boxes import labels_of_annotations, padded_rows
from fairlap.models.published_data.open_images_files import OpenImages, has_open_images
from fairlap.models.published_data.photos import Encoded, ImageSize, Photos, fitted_size, require_pillow
from fairlap.models.published_data.published_images import Array, refuse


class _Image(msgspec.Struct):
    file_name: str
    width: int
    height: int


class _Coco(msgspec.Struct):
    images: list[_Image]


class _Begins(msgspec.Struct):
    """What only a file of COCO has. The rest is skipped."""

    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]


def has_boxes(path: Path) -> bool:
    """Whether it is a file of annotations of either kind. Only a whole JSON file shows what it is."""
    if path.suffix.lower() not in (".json", ".csv") or not path.is_file():
        return False
    found = path.stat()
    return _has_boxes(path, found.st_mtime_ns, found.st_size)


def files_of_photos(path: Path, *, verified: bool = False) -> list[Path]:
    """List the photos that a file of annotations names, and of Open Images its other tables."""
    tables = OpenImages(path).files(verified=verified) if _is_table(path) else []
    return [*tables, *_read(path, verified=verified)[0]]


def boxed_photos(path: Path, size: ImageSize | None, *, verified: bool = False) -> Photos:
    """``size`` decides where the boxes are.

    Of Open Images, boxes are ``verified`` for its own score: each is of the classes above its own too, and further
    rows name the classes that people looked for, also in photos without boxes.
    """
    require_pillow(path)
    if size is None:
        raise refuse(
            path, "a detector takes photos of one size; name its input and size, as --shapes images:8x3x640x640"
        )
    files, boxes_at = _read(path, verified=verified)

    def encoded() -> Iterator[Encoded]:
        return ((str(file), file.read_bytes()) for file in files)

    return Photos(encoded, boxes_at(size), fits=True)


@lru_cache(16)
def _has_boxes(path: Path, _changed_ns: int, _bytes: int) -> bool:
    if _is_table(path):
        return has_open_images(path)
    try:
        msgspec.json.decode(path.read_bytes(), type=_Begins)
    except msgspec.MsgspecError:
        return False
    return True


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _read(path: Path, *, verified: bool) -> tuple[list[Path], Callable[[ImageSize], Array]]:
    return _open_images(path, verified=verified) if _is_table(path) else _coco(path)


def _coco(path: Path) -> tuple[list[Path], Callable[[ImageSize], Array]]:
    content = path.read_bytes()
    try:
        images, boxes = msgspec.json.decode(content, type=_Coco).images, labels_of_annotations(content)
    except (msgspec.MsgspecError, ValueError) as error:
        raise refuse(path, f"it is not a file of boxes as COCO has them: {error}") from None
    files = _photos_near(path, [each.file_name for each in images], path.stem.partition("_")[2])
    if bad := next((each for each in images if min(each.width, each.height) < 1), None):
        raise refuse(path, f"the image {bad.file_name!r:.60} is {bad.width} by {bad.height} pixels")

    def boxes_at(size: ImageSize) -> Array:
        for file, each in zip(files, images, strict=True):
            if (found := _size_of(file)) != (each.width, each.height):
                shown = "{} by {} pixels".format(*found)
                raise refuse(file, f"it has {shown}, and by {path} {each.width} by {each.height}; boxes would not fit")
        return _moved(boxes, np.array([(each.width, each.height) for each in images], np.float64), size)

    return files, boxes_at


def _open_images(path: Path, *, verified: bool) -> tuple[list[Path], Callable[[ImageSize], Array]]:
    """Corners are shares of the photo, whose size is that of its file; a box of a group is a crowd."""
    tables = OpenImages(path)
    rows = tables.boxes_and_verified() if verified else tables.boxes()
    files = _photos_near(path, [f"{name}.jpg" for name in rows], tables.part)

    def boxes_at(size: ImageSize) -> Array:
        whole, boxes = np.array([_size_of(file) for file in files], np.float64), padded_rows([*rows.values()])
        boxes[..., :4] *= np.tile(whole, 2)[:, None]
        return _moved(boxes, whole, size)

    return files, boxes_at


def _moved(boxes: Array, whole: Array, size: ImageSize) -> Array:
    """Move boxes with the photos, of ``whole`` widths and heights, into their squares."""
    places = np.array([fitted_size(int(width), int(height), size) for width, height in whole], np.float64)
    scale = places[:, None, 2:] / whole[:, None]
    found = boxes.copy()
    found[..., 0:2] = boxes[..., 0:2] * scale + places[:, None, :2]
    found[..., 2:4] = boxes[..., 2:4] * scale
    return found


def _photos_near(path: Path, names: Sequence[str], part: str) -> list[Path]:
    """Find the folder with the photos: of the part's name, or ``images``, near the annotations."""
    if bad := next((each for each in names if PurePosixPath(each).is_absolute() or ".." in each.split("/")), None):
        raise refuse(path, f"{bad!r:.60} is not the name of a file below a folder of images")
    around = (path.parent.parent, path.parent)
    folders = [root / each for root in around for each in filter(None, (part, f"images/{part}", "images"))]
    folders = [each for each in (*folders, path.parent) if each.is_dir()]
    folder = next((each for each in folders if names and (each / names[0]).is_file()), None)
    if folder is None:
        sought = ", ".join(dict.fromkeys(each.name or "." for each in folders))
        raise refuse(
            path, f"its first image {names[0] if names else ''!r:.60} is in none of the folders near it: {sought}"
        )
    files = [folder / name for name in names]
    if missing := next((file for file in files if not file.is_file()), None):
        raise refuse(missing, f"it is missing, and {path} has boxes of it")
    return files


def _size_of(file: Path) -> tuple[int, int]:
    from PIL import Image

    try:
        with Image.open(file) as image:
            width, height = image.size
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError):
        raise refuse(file, "it is not an image that can be read") from None
    return width, height

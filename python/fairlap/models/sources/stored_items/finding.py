"""Find out in which form the data at a path are stored, and what their items are."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.models.sources.stored_items.stored_items import StoredAs, StoredItems
from fairlap.models.sources.stored_items.tar_samples import (
    IMAGE_SUFFIXES,
    LABEL_SUFFIX,
    key_and_suffix,
)
from fairlap.request.fields.data.stored_data import CODE, StoredData

LABELS_FILE = "labels.npy"
_MOST_ITEMS = 2**20
_IMAGE_CHANNELS = 3


def stored_items(data: StoredData) -> StoredItems:
    """Find them, and raise InvalidRequest for data that no pipeline here reads."""
    path = Path(data.path)
    if path.is_dir():
        found = _rows(path, data) if (path / LABELS_FILE).is_file() else _images(path, data)
    elif not path.is_file():
        raise InvalidRequest(f"there is no folder and no file {path}", code=CODE)
    elif path.suffix.lower() == ".tar":
        found = _tar(path, data)
    elif path.suffix.lower() == ".parquet":
        found = _parquet(path, data)
    else:
        raise InvalidRequest(
            f"{path} is not data that pipelines read: give a folder with a folder of images for each class, a "
            f"WebDataset .tar, a .parquet file, or a folder with one .npy file and {LABELS_FILE}",
            code=CODE,
        )
    if not 1 <= found.items <= _MOST_ITEMS:
        raise InvalidRequest(f"{path} has {found.items:,} items; give 1 to {_MOST_ITEMS:,}, such as a part", code=CODE)
    return found


def _images(folder: Path, data: StoredData) -> StoredItems:
    classes = [each for each in _visible(folder) if each.is_dir()]
    if not classes or len(classes) < len(_visible(folder)):
        raise InvalidRequest(
            f"{folder} must have one folder of images for each class and nothing else, or one .npy file and "
            f"{LABELS_FILE}",
            code=CODE,
        )
    files, labels = [], []
    for number, each in enumerate(classes):
        for file in _visible(each):
            if file.suffix.lower().removeprefix(".") not in IMAGE_SUFFIXES or not file.is_file():
                raise InvalidRequest(f"{file} is not a JPEG or PNG file; remove it", code=CODE)
            files.append(str(file))
            labels.append(number)
    return _of_pixels("images", tuple(files), len(files), data, labels=tuple(labels))


def _tar(path: Path, data: StoredData) -> StoredItems:
    import tarfile

    keys: dict[str, set[str]] = {}
    last = ""
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if not member.isfile():
                    continue
                key, _, suffix = key_and_suffix(member.name)
                if key in keys and key != last:
                    raise InvalidRequest(f"{path}: members of the sample {key} are not neighbours", code=CODE)
                keys.setdefault(key, set()).add(suffix)
                last = key
    except tarfile.TarError as error:
        raise InvalidRequest(f"{path} cannot be read as an uncompressed tar: {error}", code=CODE) from None
    for key, suffixes in keys.items():
        if len(suffixes & set(IMAGE_SUFFIXES)) != 1 or LABEL_SUFFIX not in suffixes:
            raise InvalidRequest(f"{path}: the sample {key} needs one .jpg or .png and a .{LABEL_SUFFIX}", code=CODE)
    return _of_pixels("tar", (str(path),), len(keys), data)


def _parquet(path: Path, data: StoredData) -> StoredItems:
    from fairlap.models.sources.stored_items.parquet_rows import found_columns

    columns, items = found_columns(path)
    return _of_pixels("parquet", (str(path),), items, data, columns=columns)


def _of_pixels(
    stored_as: StoredAs,
    files: tuple[str, ...],
    items: int,
    data: StoredData,
    labels: tuple[int, ...] = (),
    columns: tuple[str, str] = ("", ""),
) -> StoredItems:
    shape = (*data.size, _IMAGE_CHANNELS)
    return StoredItems(stored_as, files, items, data.batch, shape, data.type, data.cache, labels, columns)


def _rows(folder: Path, data: StoredData) -> StoredItems:
    if unused := [name for name in ("size", "type") if name in data.given]:
        raise InvalidRequest(f"{folder} has rows, which are copied as they are; leave out {unused[0]}=", code=CODE)
    files = [each for each in _visible(folder) if each.suffix == ".npy" and each.name != LABELS_FILE]
    if len(files) != 1:
        raise InvalidRequest(f"{folder} must have one .npy file besides {LABELS_FILE} (found {len(files)})", code=CODE)
    rows, labels = _mapped(files[0]), _mapped(folder / LABELS_FILE)
    if rows.ndim < 1 or rows.dtype.kind not in "biuf" or not rows.flags.c_contiguous:
        raise InvalidRequest(f"{files[0]} has no rows of numbers in C order", code=CODE)
    if labels.shape != (len(rows),) or labels.dtype.kind not in "iu":
        raise InvalidRequest(
            f"{folder / LABELS_FILE} must have a whole number for each of the {len(rows):,} rows of {files[0].name}",
            code=CODE,
        )
    stored = str(files[0]), str(folder / LABELS_FILE)
    return StoredItems("rows", stored, len(rows), data.batch, rows.shape[1:], str(rows.dtype), data.cache)


def _mapped(file: Path) -> np.ndarray:
    try:
        found: np.ndarray = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidRequest(f"{file} cannot be read as .npy: {error}", code=CODE) from None
    return found


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))

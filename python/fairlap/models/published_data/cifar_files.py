"""CIFAR-10 and CIFAR-100 in both forms in which they are published: binary records, and pickled dictionaries.

Of the pickles, arrays, texts, lists and dictionaries are read and nothing else: no code in them can run. So are
those that Python 3 has saved again, in any protocol.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from fairlap.models.published_data.published_images import Array, PublishedImages, joined, refuse

_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32
_MOST_FILE_BYTES = 2**29
_TRAIN_10 = tuple(f"data_batch_{number}" for number in range(1, 6))
_ALLOWED = (
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),  # since protocol 5; it refuses arrays of objects
    ("numpy._core.numeric", "_frombuffer"),
)


def is_cifar(path: Path) -> bool:
    """Whether a file has the name of a part of either set."""
    names = (*_TRAIN_10, "test_batch")
    return path.is_file() and path.name in (*names, *(f"{name}.bin" for name in names), "train.bin", "test.bin")


def holds_cifar(folder: Path) -> bool:
    return folder.is_dir() and bool(_files_of(folder)[0])


def cifar_folder(folder: Path) -> PublishedImages:
    """Read all parts that the folder has; the test part is held out."""
    files, test = _files_of(folder)
    parts = [cifar_file(file) for file in files]
    return joined(parts, test)


def cifar_file(file: Path) -> PublishedImages:
    """Read one part, with the names of its classes from the file beside it."""
    images, labels = cifar_arrays(file)
    classes = _classes_beside(file, most=int(labels.max(initial=0)))
    return PublishedImages(images, labels.astype(np.int32), classes)


def cifar_arrays(file: Path) -> tuple[Array, Array]:
    """Read the images and the numbers of their classes from this file alone."""
    if file.stat().st_size > _MOST_FILE_BYTES:
        raise refuse(file, "it is larger than any file of CIFAR")
    return _of_records(file) if file.suffix == ".bin" else _of_pickle(file)


def _files_of(folder: Path) -> tuple[list[Path], list[bool]]:
    for train, test, end in (
        (_TRAIN_10, "test_batch", ".bin"),
        (_TRAIN_10, "test_batch", ""),
        (("train",), "test", ".bin"),
        (("train",), "test", ""),
    ):
        files = [folder / f"{name}{end}" for name in (*train, test)]
        found = [file for file in files if file.is_file()]
        if found and (len(train) > 1 or (folder / _names_file(end, fine=True)).is_file()):
            return found, [file.name == f"{test}{end}" for file in found]
    return [], []


def _names_file(end: str, *, fine: bool) -> str:
    if fine:
        return "fine_label_names.txt" if end else "meta"
    return "batches.meta.txt" if end else "batches.meta"


def _of_records(file: Path) -> tuple[Array, Array]:
    """Read records of a label, or a coarse and a fine one, and then red, green and blue row by row."""
    labels = 2 if file.name in ("train.bin", "test.bin") else 1
    values = np.fromfile(file, np.uint8)
    size = labels + _PIXELS
    if not values.size or values.size % size:
        raise refuse(file, f"its {values.size:,} bytes are no whole number of records of {size:,}")
    records = values.reshape(-1, size)
    return np.ascontiguousarray(records[:, labels:]).reshape(-1, *_SHAPE), records[:, labels - 1]


def _of_pickle(file: Path) -> tuple[Array, Array]:
    found = _unpickled(file)
    labels = found.get("labels", found.get("fine_labels"))
    pixels = found.get("data")
    if labels is None or not isinstance(pixels, np.ndarray):
        raise refuse(file, f"it lacks data or labels; it has {', '.join(sorted(found)) or 'nothing'}")
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), _PIXELS):
        raise refuse(file, f"its data is {pixels.dtype} of the shape {list(pixels.shape)} for {len(labels):,} labels")
    try:
        numbers = np.array(labels, np.uint8)
    except (TypeError, ValueError, OverflowError):
        raise refuse(file, "its labels are not numbers of classes") from None
    return np.ascontiguousarray(pixels).reshape(-1, *_SHAPE), numbers


def _unpickled(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as opened:
            found = _Unpickler(opened, encoding="bytes").load()
    except pickle.UnpicklingError as error:
        raise refuse(file, f"it is not the pickle of a part of CIFAR ({str(error).splitlines()[0]})") from None
    except (EOFError, AttributeError, IndexError, KeyError, TypeError, ValueError, ImportError, MemoryError):
        raise refuse(file, "it is not the pickle of a part of CIFAR") from None
    if not isinstance(found, dict):
        raise refuse(file, "it is not the pickle of a part of CIFAR: it holds no dictionary")
    return {_text(name): value for name, value in found.items()}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], *, encoding: str) -> None:
        super().__init__(file, encoding=encoding)

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):  # as protocols before 3, which have no bytes, make them of texts
            return _as_bytes
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no part of CIFAR does")
        return super().find_class(module, name)


def _as_bytes(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it encodes text in {encoding}, which no part of CIFAR does")
    return text.encode("latin1")


def _classes_beside(file: Path, most: int) -> tuple[str, ...]:
    """Read the names of the classes, which a file beside it has."""
    end = ".bin" if file.suffix == ".bin" else ""
    fine = file.name in ("train", "test", "train.bin", "test.bin")
    beside = file.with_name(_names_file(end, fine=fine))
    if not beside.is_file():
        return tuple(map(str, range(most + 1)))
    if end:
        names = tuple(line.strip() for line in beside.read_text("utf-8").splitlines() if line.strip())
    else:
        found = _unpickled(beside)
        names = tuple(map(_text, found.get("label_names", found.get("fine_label_names", ()))))
    if most >= len(names):
        raise refuse(beside, f"it names {len(names)} classes, and {file.name} has labels up to {most}")
    return names


def _text(name: object) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)

"""Arrays of a graph that are in another file of the model's folder: where each is, and the array mapped from there."""

from __future__ import annotations

import math
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

import numpy as np

from fairlap.errors import described
from fairlap.models.onnx_import.errors import ModelFileInvalid
from fairlap.models.onnx_import.graph import Array

MOST_EXTERNAL_BYTES = 2**38
_MAPPED_FROM_BYTES = 2**16  # smaller arrays are read: a map takes whole pages

_maps: WeakValueDictionary[tuple[int, ...], mmap.mmap] = WeakValueDictionary()  # of files, while arrays use them


@dataclass(frozen=True)
class Place:
    """Of the numbers of one array."""

    name: str  # of the tensor
    file: Path
    offset: int
    bytes: int

    def unreadable(self, why: str) -> ModelFileInvalid:
        return ModelFileInvalid(f"cannot read external data of tensor {self.name!r}: {why}")


def file_inside(folder: Path, location: str) -> Path | None:
    """Find the file that a location of external data names; None where it is not in the folder, links followed."""
    home = folder.resolve()
    try:
        path = (home / location).resolve()
        inside = path.is_relative_to(home) and (path.is_file() or not path.exists())
    except (OSError, ValueError):  # a name with a null character, or a loop of links
        inside = False
    return path if location and inside else None


def place_of(tensor: Any, folder: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Place:
    """Check that the numbers of a tensor are where it says."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location, wanted = entries.get("location", ""), math.prod(shape) * dtype.itemsize
    path = file_inside(folder, location)
    if path is None:
        raise ModelFileInvalid(f"tensor {tensor.name!r} wants data outside the model's folder: {location!r}")
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", wanted))
        size = path.stat().st_size
    except (ValueError, OSError) as error:
        raise ModelFileInvalid(f"cannot read external data of tensor {tensor.name!r}: {described(error)}") from error
    if length != wanted or offset < 0 or offset + length > size or length > MOST_EXTERNAL_BYTES:
        raise ModelFileInvalid(
            f"tensor {tensor.name!r} of shape {shape} needs {wanted} bytes; its external data are {length} bytes at "
            f"{offset} in a file of {size} bytes"
        )
    return Place(tensor.name, path, offset, length)


def array_at(place: Place, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Map the array, so that it takes memory only where it is read, which the kernel can take back.

    A small one is read, and so is one whose numbers do not start where numbers of their size may.
    """
    try:
        with place.file.open("rb") as file:
            if place.bytes < _MAPPED_FROM_BYTES or place.offset % dtype.itemsize:
                file.seek(place.offset)
                return np.frombuffer(file.read(place.bytes), dtype).reshape(shape)
            whole = _map_of(file)
        return np.frombuffer(whole, dtype, math.prod(shape), place.offset).reshape(shape)
    except OSError as error:
        raise place.unreadable(str(error.strerror)) from error
    except ValueError as error:  # it has become shorter
        raise place.unreadable(described(error)) from error


def _map_of(file: IO[bytes]) -> mmap.mmap:
    """Map a file once, since each map holds it open, and a process may have few files open."""
    found = os.fstat(file.fileno())
    key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    whole = _maps.get(key)
    if whole is None:
        whole = _maps[key] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return whole

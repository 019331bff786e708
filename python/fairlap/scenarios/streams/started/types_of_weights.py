"""In which types the files of a served model hold its weights: the same model with fewer bits is another one."""

from __future__ import annotations

import math
import mmap
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.models.sources.gguf_files.gguf_header import BadHeader, tensors_in

_LEAST_SHARE = 0.01  # of the weights: norms and biases are kept in more bits
_LARGEST_HEADER = 100_000_000


class _Entry(msgspec.Struct):
    dtype: str = ""  # of what is no tensor
    shape: tuple[int, ...] = ()


def types_of_weights(model: str) -> str:
    """Read a GGUF file, or the safetensors files of a folder; empty where there are none that can be read."""
    path = Path(model)
    try:
        found = Counter[str]()
        for kind, weights in tensors_in(path) if path.is_file() else _in_folder(path):
            found[kind] += weights
    except (OSError, ValueError, struct.error, *NOT_THE_DOCUMENT):  # also of a file that is empty
        return ""
    least = _LEAST_SHARE * found.total()
    return " and ".join(kind for kind, weights in found.most_common() if weights >= least)


def _in_folder(folder: Path) -> Iterator[tuple[str, int]]:
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            (length,) = struct.unpack_from("<Q", content)
            if length > _LARGEST_HEADER:
                raise BadHeader(f"{file} has a header of {length:,} bytes")
            header = msgspec.json.decode(content[8 : 8 + length], type=dict[str, _Entry])
        yield from ((each.dtype, math.prod(each.shape)) for each in header.values() if each.dtype)

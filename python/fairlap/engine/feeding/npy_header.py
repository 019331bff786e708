"""What a .npy file declares, as NumPy reads it, and whether the engine can feed from it."""

from __future__ import annotations

from tokenize import TokenError
from typing import Any, NamedTuple

from fairlap.errors import InvalidRequest

_MOST_HEADER_BYTES = 2**16
_MOST = 2**63 - 1
_FED = {
    "|b1": "bool",
    "|u1": "uint8",
    "|i1": "int8",
    "<i2": "int16",
    "<i4": "int32",
    "<i8": "int64",
    "<f2": "float16",
    "<f4": "float32",
    "<f8": "float64",
}


class NpyHeader(NamedTuple):
    kind: str  # of the elements, by the engine's name
    shape: tuple[int, ...]  # the first extent counts the samples
    offset: int  # where they begin, in bytes


def npy_header(path: str) -> NpyHeader:
    """Read the header, and raise InvalidRequest, which names the file once, for what no feeder could read."""
    try:
        kind, shape, in_fortran_order, offset = _declared(path)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, EOFError, MemoryError, RecursionError, TokenError):
        raise InvalidRequest(
            f"{path} has a header that NumPy cannot read; for raw samples give their shape and type"
        ) from None
    if kind.str not in _FED:
        raise InvalidRequest(
            f"{path} has elements of type '{kind.str}', which cannot be fed; "
            "give the file as raw samples if their bytes are right"
        )
    if not all(type(size) is int and 0 <= size <= _MOST for size in shape):
        raise InvalidRequest(f"{path} has a shape that is not a tuple of sizes")
    if in_fortran_order:
        raise InvalidRequest(
            f"{path} is in fortran_order, where samples are scattered; save numpy.ascontiguousarray of it"
        )
    if not shape or 0 in shape:
        raise InvalidRequest(f"{path} has the shape {shape}, which has no samples")
    return NpyHeader(_FED[kind.str], shape, offset)


def _declared(path: str) -> tuple[Any, tuple[int, ...], bool, int]:
    from numpy.lib import format as npy

    with open(path, "rb") as file:  # noqa: PTH123
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"version {version[0]}.{version[1]} is not known")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, in_fortran_order, kind = read(file, max_header_size=_MOST_HEADER_BYTES)
        return kind, shape, in_fortran_order, file.tell()

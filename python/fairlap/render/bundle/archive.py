"""A ZIP file that has one form: the same parts are always the same bytes, so that any changed byte is noticed."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlap.errors import InvalidRequest

CODE = "E_BUNDLE"
_MODE = 0o644 << 16
_UNIX = 3
_LOCAL_HEADER = 30  # bytes in front of the name of a part; ours have no further fields
_DAMAGE = (zipfile.BadZipFile, ValueError, RuntimeError, OSError, EOFError, struct.error, MemoryError, OverflowError)


@dataclass(frozen=True)
class Archive:
    parts: Mapping[str, bytes]
    damaged: Mapping[str, str] = field(default_factory=dict)  # by part, what is wrong with it; empty name: the file


def packed(parts: Mapping[str, bytes]) -> bytes:
    """Not compressed: samples hardly shrink, and what a compressor makes of the rest depends on its version."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, part in parts.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = _UNIX, _MODE
            archive.writestr(info, part)
    return content.getvalue()


def unpacked(content: bytes, whose: str) -> Archive:
    """Nothing is written to disk. Parts that cannot be read are reported, the others can still be checked."""
    parts: dict[str, bytes] = {}
    damaged: dict[str, str] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for info in archive.infolist():
                if info.filename in parts or info.filename in damaged:
                    damaged[info.filename] = "it is there twice"
                elif info.compress_type != zipfile.ZIP_STORED or info.file_size > len(content):
                    damaged[info.filename] = "it is compressed, which no part of a bundle is"
                else:
                    _read(content, archive, info, parts, damaged)
    except _DAMAGE as error:
        raise InvalidRequest(f"{whose} is not a bundle: {_reason(error)}", code=CODE) from None
    if not damaged and packed(parts) != content:
        damaged[""] = "bytes between its parts are not those that `fairlap bundle` writes"
    return Archive(parts, damaged)


def _read(
    content: bytes, archive: zipfile.ZipFile, info: zipfile.ZipInfo, parts: dict[str, bytes], damaged: dict[str, str]
) -> None:
    try:
        parts[info.filename] = archive.read(info)
    except _DAMAGE as error:
        damaged[info.filename] = _reason(error)
        parts[info.filename] = _as_it_is(content, info)


def _as_it_is(content: bytes, info: zipfile.ZipInfo) -> bytes:
    """Read the bytes of a part that its checksum contradicts: the other checks then report what is wrong with it."""
    start = info.header_offset + _LOCAL_HEADER + len(info.filename.encode())
    return content[start : start + info.file_size]


def _reason(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]

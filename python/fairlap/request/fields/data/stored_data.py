"""Data on disk over which input pipelines race: ``data:FOLDER``, with settings after it: ``:batch=64:cache=cold``."""

from __future__ import annotations

import re
from typing import Literal, get_args

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.suggestions import did_you_mean, not_one_of

CODE = "E_DATA"
PREFIX_OF_DATA = "data:"
PageCache = Literal["warm", "cold"]
PixelType = Literal["uint8", "float32"]

_SETTING = re.compile(r":(?P<name>[a-z_]+)=(?P<value>[^:/]*)$")
_SIZE = re.compile(r"(\d{1,4})(?:x(\d{1,4}))?")
_NAMES = ("batch", "size", "type", "cache")
_MOST_BATCH = 65_536


class StoredData(msgspec.Struct, frozen=True):
    """What a pass over the data yields, and whether it finds them in memory."""

    path: str
    batch: int = 32
    size: tuple[int, int] = (224, 224)  # height and width that images are resized to
    type: PixelType = "uint8"  # of their pixels: 0 to 255, or 0 to 1
    cache: PageCache = "warm"  # whether the kernel holds the files in memory when a pass begins
    given: tuple[str, ...] = ()  # names of the settings that were written


def split_settings(text: str) -> tuple[str, str]:
    """Split what follows ``data:`` into the path and its settings."""
    path = text
    while (found := _SETTING.search(path)) is not None:
        path = path[: found.start()]
    return path, text[len(path) :]


def stored_data_in(text: str) -> StoredData:
    """Read ``data:PATH:NAME=VALUE``. Raises InvalidRequest for anything else."""
    path, settings = split_settings(text.removeprefix(PREFIX_OF_DATA))
    found: dict[str, str] = {}
    for part in filter(None, settings.split(":")):
        name, _, value = part.partition("=")
        if name not in _NAMES:
            meant = did_you_mean(name, _NAMES) or f"it has {', '.join(_NAMES)}"
            raise InvalidRequest(f"{text}: data have no setting {name!r}; {meant}", code=CODE)
        if name in found:
            raise InvalidRequest(f"{text}: {name} is given twice", code=CODE)
        found[name] = value
    if not path:
        raise InvalidRequest(f"{text} names no folder and no file; write data:FOLDER", code=CODE)
    default = StoredData("")
    return StoredData(
        path,
        _batch_in(text, found["batch"]) if "batch" in found else default.batch,
        _size_in(text, found["size"]) if "size" in found else default.size,
        _one_of(text, "type", found.get("type", default.type), get_args(PixelType)),  # type: ignore[arg-type]
        _one_of(text, "cache", found.get("cache", default.cache), get_args(PageCache)),  # type: ignore[arg-type]
        tuple(found),
    )


def _batch_in(text: str, value: str) -> int:
    if not (value.isdecimal() and 1 <= int(value) <= _MOST_BATCH):
        raise InvalidRequest(f"{text}: batch must be between 1 and {_MOST_BATCH} (got {value})", code=CODE)
    return int(value)


def _size_in(text: str, value: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(value)
    sizes = () if match is None else (int(match[1]), int(match[2] or match[1]))
    if not sizes or 0 in sizes:
        raise InvalidRequest(
            f"{text}: size is a height and a width in pixels, such as 224x224 (got {value})", code=CODE
        )
    return sizes


def _one_of(text: str, name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InvalidRequest(f"{text}: {name}: {not_one_of(value, known)}", code=CODE)
    return value

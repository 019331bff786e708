"""Rows as files: CSV, JSON, JSON Lines, Parquet and Markdown. One file here for each format."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.machine.atomic_files import write_for_user
from fairlap.results.row import Row

_MODULES = {
    "csv": "csv_file",
    "json": "json_file",
    "jsonl": "json_lines_file",
    "parquet": "parquet_file",
    "md": "markdown_file",
}
FORMATS = tuple(_MODULES)
READ_BACK = FORMATS[:-1]
BINARY = ("parquet",)
_SUFFIXES = {**{f".{name}": name for name in FORMATS}, ".ndjson": "jsonl", ".markdown": "md"}


def encoded(rows: Sequence[Row], format_name: str) -> bytes:
    """The whole file as bytes. Text is UTF-8."""
    content: bytes = _module(format_name).encode(rows)
    return content


def write_rows(rows: Sequence[Row], path: Path, format_name: str) -> None:
    write_for_user(path, encoded(rows, format_name))


def read_rows(path: Path, format_name: str = "") -> list[Row]:
    """What was written, without a loss. Markdown is for people and is not read back."""
    name = format_name or format_of(path)
    if name not in READ_BACK:
        raise InvalidRequest(f"rows are not read back from {name}; export them as {', '.join(READ_BACK)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}") from None
    try:
        rows: list[Row] = _module(name).decode(content)
    except ValueError as error:  # also what msgspec, csv and pyarrow raise
        raise InvalidRequest(f"{path} does not hold rows as {name}: {error}") from None
    return rows


def format_of(path: Path) -> str:
    """By the end of the file's name."""
    found = _SUFFIXES.get(path.suffix.lower())
    if found is None:
        raise InvalidRequest(f"the name {path} does not tell the format; give --format {'|'.join(FORMATS)}")
    return found


def _module(format_name: str) -> Any:
    return import_module(f"fairlap.render.export.{_MODULES[format_name]}")

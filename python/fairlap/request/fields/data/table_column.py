"""Where the values of items are: in a file, or in a column of a table, ``FILE:COLUMN``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

TABLES = (".csv", ".tsv", ".parquet")


def file_and_column(text: str) -> tuple[str, str]:
    """Split ``people.csv:age``; without a column where the file is named alone."""
    file, colon, column = text.rpartition(":")
    return (file, column) if colon and Path(file).suffix.lower() in TABLES else (text, "")


def with_file(text: str, changed: Callable[[str], str]) -> str:
    """Change the path, and leave the column; an empty text stays empty."""
    if not text:
        return ""
    file, column = file_and_column(text)
    return f"{changed(file)}:{column}" if column else changed(file)


def absolute(text: str) -> str:
    return with_file(text, lambda file: str(Path(file).absolute()))

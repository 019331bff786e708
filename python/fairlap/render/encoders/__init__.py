"""Documents as files: the suffix of the file decides, and each format has one encoder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError
from fairlap.machine.files.atomic_files import write_output
from fairlap.render.document import Document
from fairlap.render.outputs import Format

SUFFIXES = (".json", ".csv", ".md", ".markdown", ".html", ".svg", ".png")


def write_document(document: Document, files: Iterable[tuple[Path, Format]]) -> list[FairlapError]:
    """Write each file even where another one fails. Returns what went wrong."""
    failures: list[FairlapError] = []
    for path, chosen in files:
        try:
            content = encoded(document, chosen.name)
        except FairlapError as error:  # there is nothing to draw
            failures.append(FairlapError(f"{path} was not written: {error}", code=error.code))
            continue
        try:
            write_output(path, content)
        except FairlapError as error:
            failures.append(error)
    return failures


def encoded(document: Document, format_name: str) -> bytes:
    """Encode the whole file; text is UTF-8."""
    match format_name:
        case "json":
            return msgspec.json.format(msgspec.json.encode(document.data), indent=2) + b"\n"
        case "csv":
            from fairlap.render.files.csv_file import encode_records

            return encode_records(document.records)
        case "md":
            from fairlap.render.encoders.markdown import markdown_of

            return markdown_of(document).encode()
        case "html":
            from fairlap.render.encoders.page import page_of

            return page_of(document)
    from fairlap.render.charts.parts.libraries import png_of
    from fairlap.render.charts.parts.look import LIGHT

    svg = document.draw(LIGHT)
    return png_of(svg) if format_name == "png" else svg.encode()

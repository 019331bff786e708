"""Check an archive before the library that it is for reads it."""

from __future__ import annotations

import zipfile
from pathlib import Path

from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.onnx_graphs.binding import require_memory
from fairlap.request.fields.source import Source

_MOST_TIMES_THE_FILE = 100  # an archive that grows by more when it is read is not a model


def require_archive(source: Source, otherwise: str) -> None:
    """Require a whole archive whose members stay inside, and which does not grow out of bounds."""
    path = Path(source.path)
    try:
        size = path.stat().st_size
        require_memory(size, source.text)
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    except (zipfile.BadZipFile, NotImplementedError, ValueError):  # the last for names that are not UTF-8
        raise SourceError(f"{source.text} is damaged, or {otherwise}") from None
    if any(member.filename.startswith("/") or ".." in Path(member.filename).parts for member in members):
        raise SourceError(f"{source.text} has a member outside of its folder")
    whole = sum(member.file_size for member in members)
    if whole > _MOST_TIMES_THE_FILE * max(size, 1):
        raise SourceError(f"{source.text} grows to {whole:,} bytes when it is read", code="E_SOURCE_SIZE")
    require_memory(whole, source.text)

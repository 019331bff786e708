"""The kinds of sources: those in ``kinds``, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fairlap.errors import InvalidRequest
from fairlap.models.names import is_unknown_size, workload_names
from fairlap.models.sources.contract import SourceKind
from fairlap.plugins import class_at
from fairlap.request.fields.source import Source

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "fairlap.sources"
_OURS = Path(__file__).parent / "kinds"


@cache
def kinds() -> tuple[type[SourceKind], ...]:
    """Ours first. Imports their modules, and none of the libraries that read the files."""
    ours = sorted(f"fairlap.models.sources.kinds.{file.stem}:KIND" for file in _OURS.glob("[a-z]*.py"))
    return tuple(kind_at(place) for place in (*ours, *(entry.value for entry in _entries())))


def plug_ins() -> dict[str, str]:
    """Versions of the packages that add kinds, by their names."""
    return {entry.dist.name: entry.dist.version for entry in _entries() if entry.dist is not None}


def _entries() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def kind_of(text: str) -> type[SourceKind] | None:
    """Find the kind of source that this text names; None for the name of a model, or of a size that it lacks."""
    return None if is_unknown_size(text) else _recognised(text)


def _recognised(text: str) -> type[SourceKind] | None:
    if text in workload_names():
        return None
    return next((kind for kind in kinds() if kind.recognises(text)), None)


def place_of(kind: type[SourceKind]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@cache
def kind_at(place: str) -> type[SourceKind]:
    return class_at(place, SourceKind, "the kind of source")  # type: ignore[type-abstract]


def require_kind(source: Source) -> type[SourceKind]:
    found = _recognised(",".join((source.path, *source.exports)))
    if found is None:
        raise InvalidRequest(f"{source.text} is not a model file that fairlap reads", code="E_SOURCE")
    return found

"""Files of other tools, which may be broken or hostile: limits, strict JSON, and one kind of error."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fairlap import quantity_text
from fairlap.errors import InvalidRequest, reason_of
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.files.regular_file import content_of

E_OTHER_TOOL = "E_OTHER_TOOL"
MOST_BYTES = 64 * 2**20  # of one file
_MOST_BYTES_OF_ALL = 512 * 2**20
_MOST_FILES = 50_000
_MOST_POINTS = 1_000_000
_MOST_CHARACTERS = 500
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError, *NOT_THE_DOCUMENT)

_Kind = TypeVar("_Kind")


def refuse(path: Path, why: str) -> InvalidRequest:
    return InvalidRequest(f"{path} cannot be imported: {why}; nothing was stored", code=E_OTHER_TOOL)


def why_not_json(error: json.JSONDecodeError) -> str:
    """Name the place as editors do, by characters from 1, and what is wrong there."""
    ends = not error.doc[error.pos :].strip()
    what = "it ends too early" if ends else f"{error.msg[:1].lower()}{error.msg[1:]}"
    return f"not valid JSON in line {error.lineno}, column {error.colno}: {what}"


@dataclass
class Files:
    """Counts what one import has read."""

    bytes_read: int = 0
    files_seen: int = field(default=0)

    def content(self, path: Path) -> bytes:
        with self.understood(path):
            size = path.stat().st_size
            if size > MOST_BYTES:
                raise refuse(
                    path, f"it has {quantity_text.size(size)}, and at most {quantity_text.size(MOST_BYTES)} are read"
                )
            content = content_of(path)
            self.bytes_read += len(content)
        if self.bytes_read > _MOST_BYTES_OF_ALL:
            raise refuse(
                path, f"these files have more than {quantity_text.size(_MOST_BYTES_OF_ALL)}; import fewer at once"
            )
        return content

    def json(self, path: Path) -> dict[str, Any]:
        """Parse an object; asv writes NaN and Infinity, which are no JSON for stricter readers."""
        return self.parsed(path, self.content(path))

    def parsed(self, path: Path, content: bytes) -> dict[str, Any]:
        with self.understood(path):
            try:
                found = json.loads(content)
            except json.JSONDecodeError as error:
                raise refuse(path, f"it is {why_not_json(error)}") from None
        if not isinstance(found, dict):
            raise refuse(path, "it is not a JSON object")
        return found

    def read(self, path: Path, kind: type[_Kind]) -> _Kind:
        return self.converted(path, self.json(path), kind)

    def converted(self, path: Path, found: Any, kind: type[_Kind]) -> _Kind:
        with self.understood(path):
            return msgspec.convert(found, kind)

    def walk(self, folder: Path) -> Iterator[Path]:
        """List the JSON files below a folder, in order; links are not followed."""
        for place, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                path = Path(place, name)
                self.files_seen += 1
                if self.files_seen > _MOST_FILES:
                    raise refuse(folder, f"it has more than {_MOST_FILES:,} files")
                if name.endswith(".json") and path.is_file() and not path.is_symlink():
                    yield path

    def require_few(self, points: Sequence[object]) -> None:
        if len(points) > _MOST_POINTS:
            raise InvalidRequest(
                f"these files hold more than {_MOST_POINTS:,} values; import fewer at once", code=E_OTHER_TOOL
            )

    @contextmanager
    def understood(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise refuse(path, reason_of(error)) from None
        except InvalidRequest:
            raise
        except _UNREADABLE as error:
            raise refuse(path, " ".join(str(error).split())[:_MOST_CHARACTERS] or type(error).__name__) from None


def text_of(text: object) -> str:
    """Keep what can be stored and printed, cut to what a name may be long."""
    return str(text).encode("utf-8", "replace").decode().replace("\0", "\ufffd")[:_MOST_CHARACTERS]


def at_milliseconds(since_1970: float) -> str:
    return datetime.fromtimestamp(since_1970 / 1000, UTC).isoformat(timespec="seconds")


def at_text(text: str) -> str:
    """Read a time in ISO 8601; one without a zone is in UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"its datetime {text[:_MOST_CHARACTERS]!r} is not in ISO 8601") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")

"""The JSON schema of a type, the same by every release of msgspec."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec


def plain_schema(kind: Any, schema_hook: Callable[[type], dict[str, Any]] | None = None) -> dict[str, Any]:
    """Write descriptions without the indentation of their source, and no default that is an empty table."""
    found: dict[str, Any] = _plain(msgspec.json.schema(kind, schema_hook=schema_hook))
    return found


def _plain(part: Any) -> Any:
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {name: _plain(value) for name, value in part.items() if (name, value) != ("default", {})}
    if isinstance(text := kept.get("description"), str):
        kept["description"] = inspect.cleandoc(text)
    return kept

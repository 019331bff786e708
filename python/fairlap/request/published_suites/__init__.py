"""Suites in the shape of those that the field publishes, each a file beside this one."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def published_suites() -> dict[str, Path]:
    """By their names."""
    return {file.stem: file for file in sorted(_FOLDER.glob("*.toml"))}


def suite_named(path: Path) -> Path:
    """Find the file of a name such as ``deepbench``; a path that is there, or that is no such name, stays."""
    if path.exists() or str(path) != path.name:
        return path
    return published_suites().get(path.name, path)

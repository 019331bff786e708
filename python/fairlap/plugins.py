"""Classes that are named by their place, ``module:Class``: built-in ones, and those of installed packages."""

from __future__ import annotations

import sys
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from fairlap.errors import InvalidRequest, described

_Class = TypeVar("_Class")

SCENARIOS = "fairlap.scenarios"
"""The entry points by which an installed package adds a scenario, as ``module:Class``."""


def class_at(place: str, base: type[_Class], what: str) -> type[_Class]:
    """Import it. ``what`` names it in the message when that fails, such as "the adapter"."""
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"{what} at {place} cannot be loaded: {described(error)}") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise InvalidRequest(f"{place} is not a {base.__name__}")
    return found


@cache
def object_at(place: str, base: type[_Class], what: str) -> _Class:
    """Make the one object of that class, which has no state."""
    return class_at(place, base, what)()


def places_in_packages(group: str) -> dict[str, str]:
    """Find the entry points of installed packages, by name.

    Metadata is read again only where a folder of Python's path has changed, as it does when pip installs something.
    """
    return dict(_entries(group, tuple(map(_state_of, sys.path))))


@lru_cache(maxsize=16)
def _entries(group: str, _path: tuple[tuple[str, int, int], ...]) -> dict[str, str]:
    from importlib.metadata import entry_points  # of every package: takes 25 ms, and a worker rarely needs it

    return {entry.name: entry.value for entry in entry_points(group=group)}


def _state_of(folder: str) -> tuple[str, int, int]:
    try:
        found = Path(folder).stat()
    except OSError:
        return folder, 0, 0
    return folder, found.st_ino, found.st_mtime_ns

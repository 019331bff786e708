"""Classes that are named by their place, ``module:Class``: built-in ones, and those of installed packages."""

from __future__ import annotations

from importlib import import_module
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

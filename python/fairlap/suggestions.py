"""The name that was probably meant by a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairlap.errors import InvalidRequest

_SHORTEST_BEGINNING = 3


def nearest(name: str, among: Iterable[str], most: int = 1) -> list[str]:
    """List up to so many near names, the nearest first, else those that begin so; upper and lower case are the same."""
    import difflib

    folded: dict[str, list[str]] = {}
    for each in among:
        folded.setdefault(each.casefold(), []).append(each)
    near = difflib.get_close_matches(name.casefold(), folded, n=most)
    near = near[:1] if name.casefold() in folded else near  # which is certain
    if not near and len(name) >= _SHORTEST_BEGINNING:
        near = [each for each in folded if each.startswith(name.casefold())]
    return [each for found in near for each in folded[found]][:most]


def did_you_mean(name: str, among: Iterable[str], most: int = 1) -> str:
    """Return ``did you mean torch?``, with up to so many names; empty where none is near."""
    near = nearest(name, among, most)
    return f"did you mean {', '.join(near)}?" if near else ""


def with_hint(sentence: str, name: str, among: Iterable[str]) -> str:
    """Add ``; did you mean torch?`` to a sentence, where a name is near."""
    hint = did_you_mean(name, among)
    return f"{sentence}; {hint}" if hint else sentence


def not_one_of(name: str, among: Iterable[str]) -> str:
    """Return ``'warn' is not one of warm, cold; did you mean warm?``, of all names that may be chosen."""
    known = list(among)
    return with_hint(f"{name!r} is not one of {', '.join(known)}", name, known)


def part_named(module: Any, path: str, place: str) -> Any:
    """Find ``function`` or ``Class.method`` in a module. ``place`` is what the user calls the module."""
    found = module
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            public = [each for each in dir(found) if not each.startswith("_")]
            raise InvalidRequest(with_hint(f"{place} has no {path!r}", name, public)) from None
    return found

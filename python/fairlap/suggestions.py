"""The name that was probably meant by a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, among: Iterable[str], most: int = 1) -> list[str]:
    """List up to so many near names, the nearest first; upper and lower case are the same."""
    import difflib

    folded: dict[str, list[str]] = {}
    for each in among:
        folded.setdefault(each.casefold(), []).append(each)
    near = difflib.get_close_matches(name.casefold(), folded, n=most)
    near = near[:1] if name.casefold() in folded else near  # which is certain
    return [each for found in near for each in folded[found]][:most]


def did_you_mean(name: str, among: Iterable[str], most: int = 1) -> str:
    """Return ``did you mean torch?``, with up to so many names; empty where none is near."""
    near = nearest(name, among, most)
    return f"did you mean {', '.join(near)}?" if near else ""


def not_one_of(name: str, among: Iterable[str]) -> str:
    """Return ``'warn' is not one of warm, cold; did you mean warm?``, of all names that may be chosen."""
    known = list(among)
    hint = did_you_mean(name, known)
    return f"{name!r} is not one of {', '.join(known)}" + (f"; {hint}" if hint else "")

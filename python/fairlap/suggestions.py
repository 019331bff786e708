"""The name that was probably meant by a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, among: Iterable[str]) -> str:
    """Return ``did you mean torch?``; empty where no name is near."""
    import difflib

    near = difflib.get_close_matches(name, list(among), n=1)
    return f"did you mean {near[0]}?" if near else ""

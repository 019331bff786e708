"""The name that was probably meant by a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, among: Iterable[str], most: int = 1) -> str:
    """Return ``did you mean torch?``, with up to so many names; empty where none is near."""
    import difflib

    near = difflib.get_close_matches(name, list(among), n=most)
    return f"did you mean {', '.join(near)}?" if near else ""

"""What codes.md says of each code of an error or a warning."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_SECTION = re.compile(r"^## ([EW]_[A-Z0-9_]+|INCONCLUSIVE|VERDICT)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)

_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_WHAT_TO_DO = "What to do:"


@cache
def explanations() -> dict[str, str]:
    """By code, in the order of codes.md; and of VERDICT and its outcome INCONCLUSIVE.

    Each ends with a paragraph that begins with "What to do:".
    """
    page = files("fairlap").joinpath("codes.md").read_text(encoding="utf-8")
    return {code: text.strip().replace(f"**{_WHAT_TO_DO}**", _WHAT_TO_DO) for code, text in _SECTION.findall(page)}


def without_links(text: str) -> str:
    """Leave the texts of links, for a terminal; links in codes.md are between its pages."""
    return _LINK.sub(r"\1", text)


def paragraphs_of_a_claim() -> tuple[str, ...]:
    """Return what a verdict rests on, what would refute it and how to strengthen it; a line for each."""
    _, _, text = explanations()["VERDICT"].rpartition("\n- ")
    return tuple(" ".join(each.split()) for each in text.split("\n\n")[1:])


def next_step(explanation: str) -> str:
    """Return the paragraph that says what to do as one line; empty where there is none."""
    _, found, step = explanation.partition(f"\n\n{_WHAT_TO_DO} ")
    return without_links(" ".join(step.split())) if found else ""

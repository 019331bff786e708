"""Strangers' text in Markdown, and figures for people."""

from __future__ import annotations

import math
import re

from fairlap.errors import shortened
from fairlap.ledger.schema import Estimate

_MOST_CHARACTERS = 120
_MOST_DECIMALS = 6
_HARMLESS_AS_CODE = re.compile(r"[A-Za-z0-9 .,_=~<>!:;/()*+%@#&'\"-]+")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def as_code(text: str, most: int = _MOST_CHARACTERS) -> str:
    """A text that no Markdown reader takes for anything else: no mark-up, no link, no mention of a person.

    In a code span everything is literal but a backtick, and in a table a bar; a text with anything out of the ordinary
    is written as character references, which are never structure.
    """
    line = " ".join(shortened(text.strip(), most).split())
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
    if not line:
        return ""
    if _HARMLESS_AS_CODE.fullmatch(line):
        return f"`{line}`"
    return f"<code>{_PUNCTUATION.sub(lambda found: f'&#{ord(found[0])};', line)}</code>"


def ratio_text(ratio: Estimate) -> str:
    """``1.31 [1.18, 1.54]``: two digits of the width, and so many decimals that no bound beside 1 is shown as 1."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.3g}" if ratio.value < 1000 else f"{ratio.value:,.0f}"
    width = max(ratio.high - ratio.low, 10.0**-_MOST_DECIMALS)
    decimals = min(_MOST_DECIMALS, max(2, 1 - math.floor(math.log10(width))))
    while decimals < _MOST_DECIMALS and any(
        bound != 1 and float(f"{bound:.{decimals}f}") == 1 for bound in (ratio.low, ratio.high)
    ):
        decimals += 1
    value, low, high = (f"{each:.{decimals}f}" for each in (ratio.value, ratio.low, ratio.high))
    return f"{value} [{low}, {high}]"


def figure_text(value: float) -> str:
    """Four figures; thousands with commas."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent_text(share: float) -> str:
    return f"{100 * share:,.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"

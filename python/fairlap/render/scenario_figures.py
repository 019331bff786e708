"""Figures that scenarios of installed packages add to a row, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlap import quantity_text
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row

_TEXTS: Mapping[str, Callable[[Estimate], str]] = {
    "_per_s": lambda found: quantity_text.figure(found.value, "1/s", found.low, found.high),
    "_ns": lambda found: quantity_text.duration_interval(found.value, found.low, found.high),
    "_s": lambda found: quantity_text.figure(found.value, "s", found.low, found.high),
    "_bytes": lambda found: quantity_text.size(found.value),
    "_share": lambda found: quantity_text.share(found.value),
    "_j": lambda found: quantity_text.quantity(found.value, "J", found.low, found.high),
    "_w": lambda found: quantity_text.quantity(found.value, "W", found.low, found.high),
    "": lambda found: quantity_text.number(found.value),
}
"""By the end of the name, which is the unit."""


def scenario_figures_text(row: Row) -> str:
    """``longest call 3.2 ms [3.1, 3.4]``; empty where no scenario adds any."""
    return ", ".join(_text(name, found) for name, found in row.scenario_figures.items())


def _text(name: str, found: Estimate) -> str:
    unit = next(each for each in _TEXTS if name.endswith(each))
    return f"{name.removesuffix(unit).replace('_', ' ')} {_TEXTS[unit](found)}"

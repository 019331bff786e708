"""Colours and fonts of charts in the light and the dark theme. Colours stay distinct for colour-blind readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairlap.render.charts.parts.labels import label_expression

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"

_NUMBERS = {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["", ""], "percent": " %"}  # as in texts


@dataclass(frozen=True)
class Look:
    """After Okabe and Ito (2008), a little darker on paper and a little lighter on black."""

    paper: str
    ink: str
    muted: str
    line: str
    contestants: tuple[str, ...]
    phases: tuple[str, ...]  # until the first answer
    layers: tuple[str, ...]  # of memory

    def config(self, font: str = _FONT) -> dict[str, Any]:
        return {
            "background": None,
            "font": font,
            "view": {"stroke": None},
            "axis": {
                "domain": False,
                "ticks": False,
                "grid": True,
                "gridColor": self.line,
                "labelColor": self.muted,
                "labelFontSize": 12,
                "labelPadding": 8,
                "labelOverlap": "greedy",
                "titleColor": self.muted,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "titlePadding": 10,
            },
            "axisX": {"labelSeparation": 8, "labelBound": True},
            "axisYPoint": {"grid": False, "labelColor": self.ink, "labelFontSize": 13, "labelLimit": 150},
            "axisYBand": {"grid": False, "labelColor": self.ink, "labelFontSize": 13, "labelLimit": 150},
            "legend": {
                "labelColor": self.ink,
                "labelFontSize": 12,
                "titleColor": self.muted,
                "titleFontWeight": "normal",
                "symbolType": "circle",
            },
            "header": {"labelColor": self.ink, "labelFontSize": 13, "labelFontWeight": "bold"},
            "text": {"color": self.ink, "fontSize": 12},
            "rule": {"color": self.muted},
            "tick": {"color": self.ink},
            "locale": {"number": _NUMBERS},
        }

    def colours(self, count: int) -> list[str]:
        return [self.contestants[place % len(self.contestants)] for place in range(count)]


LIGHT = Look(
    paper="#ffffff",
    ink="#1d2430",
    muted="#5b6575",
    line="#e6e9ee",
    contestants=("#0072b2", "#d55e00", "#00886a", "#b65a93", "#a87400", "#3a9bd1", "#5a5f6b", "#7d7a00"),
    phases=("#c3cad5", "#8fa3bf", "#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73"),
    layers=("#0072b2", "#9fcbe6", "#e69f00"),
)
DARK = Look(
    paper="#14171c",
    ink="#e8ebf0",
    muted="#9aa4b2",
    line="#2a303a",
    contestants=("#56b4e9", "#ff8a4c", "#2cc99a", "#e8a0c8", "#f2b84b", "#a3c9ff", "#c3c9d3", "#d9d25a"),
    phases=("#4a5362", "#6f819c", "#56b4e9", "#a5d8f6", "#ff8a4c", "#f2b84b", "#2cc99a"),
    layers=("#56b4e9", "#2f617f", "#f2b84b"),
)

INHERITED = replace(
    LIGHT,
    paper="none",
    ink="currentColor",
    muted="currentColor",
    line="currentColor",
    contestants=("#0072b2", "#d55e00", "#00886a", "#b65a93", "#a87400", "#3a9bd1", "#747a86", "#7d7a00"),
)
"""Of the page that the picture is part of, light or dark: contestants have a contrast of 3 with both."""

CONTESTANTS = "fairlap: contestants"
CONTESTANT_COLOURS = "fairlap: colours of contestants"
PHASE_COLOURS = "fairlap: colours of phases"
LAYER_COLOURS = "fairlap: colours of layers"
INK, MUTED, PAPER = "fairlap: ink", "fairlap: muted", "fairlap: paper"
LABEL = "fairlap: label of a contestant"
"""Placeholders in a chart for what the choice of contestants and of the theme decides."""


def filled_in(spec: Any, look: Look, shown: Sequence[str], colours: Sequence[str]) -> Any:
    """Fill in the placeholders of the chart, as page.js does it too."""
    values: dict[str, Any] = {INK: look.ink, MUTED: look.muted, PAPER: look.paper, LABEL: label_expression(shown)}
    lists = {
        CONTESTANTS: list(shown),
        CONTESTANT_COLOURS: list(colours),
        PHASE_COLOURS: list(look.phases),
        LAYER_COLOURS: list(look.layers),
    }
    if isinstance(spec, dict):
        return {key: filled_in(value, look, shown, colours) for key, value in spec.items()}
    if isinstance(spec, list):
        if len(spec) == 1 and isinstance(spec[0], str) and spec[0] in lists:
            return lists[spec[0]]
        return [filled_in(value, look, shown, colours) for value in spec]
    return values.get(spec, spec) if isinstance(spec, str) else spec

"""Figures with their intervals as a small picture, a line for each, drawn without a library of charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairlap.render.charts.parts.labels import WIDE, chart_text, short_names
from fairlap.render.charts.parts.look import Look
from fairlap.render.report.markup import Markup, tag

_NAMES, _PLOT, _FIGURES = 160, 300, 200  # the widths of the columns, in the units of the picture
_MARGIN = 12  # at both ends of the plot, so that no mark touches a text
_LINE, _DOT, _FONT = 26, 4.5, 12
_WIDTH = _NAMES + _PLOT + _FIGURES


@dataclass(frozen=True)
class IntervalLine:
    name: str
    value: float  # above 0
    low: float | None
    high: float | None
    text: str  # the figure as it is written
    place: int  # of its colour

    @property
    def ends(self) -> tuple[float, float]:
        """Without an interval, both are the value."""
        known = self.low is not None and self.high is not None and self.low > 0 and math.isfinite(self.high)
        return (self.low, self.high) if known else (self.value, self.value)  # type: ignore[return-value]


def interval_lines(lines: Sequence[IntervalLine], described: str, look: Look) -> Markup:
    """Draw them on one logarithmic axis, which begins and ends where the intervals do."""
    names = short_names([chart_text(line.name) for line in lines], WIDE)
    colours = look.colours(max((line.place for line in lines), default=0) + 1)
    scale = _Scale.over(lines)
    height = _LINE * len(lines)
    drawn = (
        _line(line, names[chart_text(line.name)], _LINE * (number + 0.5), scale, colours[line.place], look)
        for number, line in enumerate(lines)
    )
    return tag(
        "svg",
        drawn,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height}",
        width=str(_WIDTH),
        height=str(height),
        style="max-width: 100%; height: auto",
        role="img",
        aria_label=described,
        font_family="system-ui, sans-serif",
        font_size=str(_FONT),
    )


@dataclass(frozen=True)
class _Scale:
    least: float
    most: float

    @classmethod
    def over(cls, lines: Sequence[IntervalLine]) -> _Scale:
        ends = [end for line in lines for end in (*line.ends, line.value)]
        return cls(min(ends, default=1.0), max(ends, default=1.0))

    def x(self, value: float) -> float:
        span = math.log(self.most / self.least)
        share = math.log(value / self.least) / span if span > 0 else 0.5
        return _NAMES + _MARGIN + share * (_PLOT - 2 * _MARGIN)


def _line(line: IntervalLine, name: str, y: float, scale: _Scale, colour: str, look: Look) -> Markup:
    low, high = (f"{scale.x(end):.1f}" for end in line.ends)
    at, base = f"{y:.1f}", f"{y + _FONT / 3:.1f}"
    grid = {"stroke": look.line, "stroke_width": "1", "stroke_opacity": "0.25"}
    return tag(
        "g",
        tag("title", f"{line.name}: {line.text}"),
        tag("line", x1=str(_NAMES), x2=str(_NAMES + _PLOT), y1=at, y2=at, **grid),
        tag("line", x1=low, x2=high, y1=at, y2=at, stroke=colour, stroke_width="5", stroke_opacity="0.5"),
        tag("circle", cx=f"{scale.x(line.value):.1f}", cy=at, r=str(_DOT), fill=colour),
        tag("text", name, x="0", y=base, fill=look.ink),
        tag("text", line.text, x=str(_NAMES + _PLOT + _MARGIN), y=base, fill=look.ink),
    )

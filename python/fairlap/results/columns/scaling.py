"""The columns of a row about scale: on how many threads and ranks it ran, and what more of them brought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlap.request.work import Conditions, Work
from fairlap.results.estimates import Cell, cell_or
from fairlap.results.scales.scaling_series import ScalingSeries

_COMPARED = ("speed_up", "speed_up_verdict", "efficiency", "efficiency_verdict")
_ONE_SCALE = "the work was raced at one scale"
_SMALLEST = "it is the smallest scale"


def scale_of(work: Work) -> dict[str, Any]:
    """Columns that are never absent."""
    scale = work.scale
    if scale is None:
        return {"ranks": 1, "hosts": [], "scale": "", "scaling": ""}
    return {
        "ranks": scale.ranks,
        "hosts": list(scale.hosts),
        "scale": scale.text,
        "scaling": scale.scaling if scale.ranks > 1 else "",
    }


def scaling_cells(
    series: Sequence[ScalingSeries], contestant: str, work: Work, conditions: Conditions
) -> dict[str, Cell]:
    point = next(
        (
            point
            for each in series
            if (each.contestant, each.conditions) == (contestant, conditions)
            for point in each.points
            if point.work == work
        ),
        None,
    )
    if point is None:
        return dict.fromkeys(_COMPARED, Cell(None, _ONE_SCALE))
    if point.absent:
        return dict.fromkeys(_COMPARED, Cell(None, point.absent))
    return {
        "speed_up": Cell(point.speed_up),
        "speed_up_verdict": cell_or(point.speed_up_verdict or None, _SMALLEST),
        "efficiency": cell_or(point.efficiency, point.no_efficiency),
        "efficiency_verdict": cell_or(point.efficiency_verdict or None, point.no_efficiency or _SMALLEST),
    }

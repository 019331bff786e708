"""The scenario of derivatives: Jacobians, Hessians and their products, by the median time of a call at drawn points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairlap.frameworks.adapter_parts.differentiated import INPUTS_PER_OUTPUT
from fairlap.models.modes import MODES
from fairlap.request.work import Work
from fairlap.scenarios.added import Picture
from fairlap.scenarios.calls.calls_scenario import Calls
from fairlap.scenarios.contract import Asked
from fairlap.scenarios.process_result import ProcessResult


def _points(process: ProcessResult) -> Iterator[dict[str, float | str]]:
    if process.timings and "direction" in process.in_force:
        yield {"ms": process.headline_ns / 1e6, "direction": process.in_force["direction"]}


def _jacobians(process: ProcessResult) -> Iterator[dict[str, float | str]]:
    ratio = process.in_force.get(INPUTS_PER_OUTPUT)
    if ratio is not None:
        yield from ({**point, "ratio": float(ratio)} for point in _points(process))


_TIME = {
    **{"field": "ms", "aggregate": "median", "type": "quantitative", "scale": {"type": "log"}},
    "title": "time of a call in ms",
}


def _spec() -> dict[str, Any]:
    return {
        "mark": {"type": "point", "filled": True, "size": 60},
        "encoding": {
            "x": _TIME,
            "y": {"field": "work", "type": "nominal", "title": None, "axis": {"labelLimit": 300}},
            "color": {"field": "contestant", "type": "nominal"},
            "shape": {"field": "direction", "type": "nominal", "legend": {"title": None, "orient": "bottom"}},
        },
    }


def _spec_by_ratio() -> dict[str, Any]:
    ratio = {"field": "ratio", "type": "quantitative", "scale": {"type": "log"}, "title": "inputs for each output"}
    legend = {"title": None, "orient": "bottom", "symbolType": "stroke", "symbolSize": 400}
    return {
        "encoding": {"x": ratio, "y": _TIME, "color": {"field": "contestant", "type": "nominal"}},
        "layer": [
            {
                "mark": "line",
                "encoding": {"strokeDash": {"field": "direction", "type": "nominal", "legend": legend}},
            },
            # Separate from the lines: points on a line leave the legend of its dashes without strokes.
            {"mark": {"type": "point", "filled": True, "size": 60}},
        ],
    }


_TIMES = Picture(
    "derivatives",
    "Time of each derivative",
    "Each mark is the median of a contestant's processes. Forward mode gains where a function has more outputs than "
    "inputs, reverse mode where it has fewer.",
    _points,
    _spec,
    over_works=True,
)

_BY_RATIO = Picture(
    "jacobians",
    "Time of Jacobians by their shape",
    "Where the line of forward mode crosses that of reverse mode, the other one becomes cheaper. Each mark is the "
    "median of a contestant's processes on one function.",
    _jacobians,
    _spec_by_ratio,
    over_works=True,
)


class Derivatives(Calls):
    race_side = "fairlap.scenarios.derivatives.race.from_request:DerivativesFromRequest"
    pictures = (_TIMES, _BY_RATIO)
    judged_before = ()  # rows of derivatives have always said by what they were ranked

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return MODES[work.mode].differentiates

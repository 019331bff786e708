"""The scenario of solvers of differential equations: they are ranked by the time that they take to an equal error."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from fairlap import quantity_text, verdict
from fairlap.request.work import Work
from fairlap.scenarios.added import AddedFigure, Picture
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario, Unqualified
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.solving.settings import ERROR, SETTINGS, USUAL_ERROR

NOT_CROSSED = "E_ERROR_NOT_REACHED"
TIME_TO_ERROR = verdict.Metric("time to the error", "ns")


def error_asked(settings: Mapping[str, str]) -> float:
    return ERROR.value_in(settings) or USUAL_ERROR


def _time_ns(process: ProcessResult) -> float | None:
    return None if process.work_precision is None else process.work_precision.time_ns


def _steps(process: ProcessResult) -> float | None:
    return None if process.work_precision is None else process.work_precision.steps


def _evaluations(process: ProcessResult) -> float | None:
    return None if process.work_precision is None else process.work_precision.evaluations


def _smallest_error(process: ProcessResult) -> float | None:
    return None if process.work_precision is None else min(process.work_precision.errors, default=None)


def _points(process: ProcessResult) -> Iterator[dict[str, float | str]]:
    curve = process.work_precision
    for each in () if curve is None else curve.points:
        if curve is not None and each.error and each.p50_ns is not None:
            yield {"tolerance": each.tolerance, "error": each.error, "ms": each.p50_ns / 1e6, "target": curve.error}


def _spec() -> dict[str, Any]:
    error = {"field": "error", "type": "quantitative", "scale": {"type": "log"}}
    time = {"field": "ms", "type": "quantitative", "scale": {"type": "log"}, "title": "time of a solve in ms"}
    axis = {"format": ".0e", "tickCount": 6}
    return {
        "layer": [
            {
                "mark": {"type": "line", "point": True},
                "encoding": {
                    "x": {**error, "aggregate": "median", "title": "error at the end", "axis": axis},
                    "y": {**time, "aggregate": "median"},
                    "order": {"field": "tolerance", "type": "quantitative"},
                    "color": {"field": "contestant", "type": "nominal"},
                },
            },
            {
                "mark": {"type": "rule", "strokeDash": [5, 4]},
                "encoding": {"x": {**error, "field": "target", "aggregate": "max"}},
            },
        ]
    }


_CURVES = Picture(
    "work-precision",
    "Time against error",
    "Each mark is one tolerance: the medians of all processes. Solvers are compared at the dashed line; lower is "
    "faster.",
    _points,
    _spec,
)


class Solving(Scenario):
    judges_rounds = False
    after_turns = "fairlap.scenarios.solving.race.solve_run:SolveRun"
    race_side = "fairlap.scenarios.solving.race.from_request:SolvingFromRequest"
    render_side = "fairlap.scenarios.solving.render.shown:SolvingShown"
    budgets_s = (300.0, 900.0)  # of Python's solvers, a process takes ten seconds and more
    settings = SETTINGS
    figures = (
        AddedFigure("steps_to_error", _steps, "a process did not come to the error"),
        AddedFigure(
            "evaluations_to_error", _evaluations, "a process did not come to the error, or does not count them"
        ),
        AddedFigure("smallest_error", _smallest_error, "a process has no solution"),
    )
    pictures = (_CURVES,)

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.mode in ("solve", "solve-grad")

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        error = error_asked(asked.scenario_settings)
        by = f"time to an error of {error:g}" + " with the gradient" * (work.mode == "solve-grad")
        short = {name: why for name, own in processes.items() if (why := _why_short(own, error)) is not None}
        return Ruling(Judged(by, TIME_TO_ERROR, _time_ns, period="after_turns"), short, remark=by)

    def has_result(self, work: Work, finished: Sequence[ProcessResult]) -> bool:
        return any(_time_ns(process) is not None for process in finished)


def _why_short(processes: Sequence[ProcessResult], error: float) -> Unqualified | None:
    """Say why a contestant has no time to the error: leaving out the blocks where it has none would favour it."""
    finished = [process for process in processes if process.finished]
    short = [process.work_precision for process in finished if _time_ns(process) is None]
    if not short:
        return None
    where = f"in {len(short)} of {quantity_text.count(len(finished), 'process')}"
    given_up = sorted({each for curve in short if curve is not None for each in curve.given_up})
    gave_up = f", and it gave up at {', '.join(f'{each:g}' for each in given_up)}" if given_up else ""
    smallest = [min(curve.errors) for curve in short if curve is not None and curve.errors]
    if not smallest:
        return Unqualified(f"found no solution at any tolerance {where}", NOT_CROSSED)
    if max(smallest) > error:
        text = f"did not come to an error of {error:g} {where}; its smallest was {max(smallest):.1e}{gave_up}"
    else:
        text = f"is below an error of {error:g} at its loosest tolerance {where}; add looser ones with --tolerances"
    return Unqualified(text, NOT_CROSSED)

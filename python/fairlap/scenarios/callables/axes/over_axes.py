"""``fairlap.compare_over``: callables compared at every point of some axes, within one budget and one error rate.

Points run in a drawn order, so that a machine that gets slower does not look like a cost that grows. A point that fails
says why, and the others go on.
"""

from __future__ import annotations

import math
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fairlap.engine.arguments import positive_number, whole_number
from fairlap.errors import FairlapError, InvalidRequest, described, shown
from fairlap.machine.roofs import Roofs
from fairlap.scenarios.callables.axes.axis import Axis, Point, axes_of, point_text, points_of
from fairlap.scenarios.callables.axes.by_size import costs_of, crossings_of, size_axis_of
from fairlap.scenarios.callables.axes.declared_work import (
    Declared,
    DeclaredWork,
    declared_at_points,
    number_type_of,
    roof_shares,
)
from fairlap.scenarios.callables.axes.point_inputs import Draw, PointInputs, bound, point_inputs
from fairlap.scenarios.callables.axes.result import ComparisonOverAxes, PointResult
from fairlap.scenarios.callables.in_process import BUDGET_S, compare
from fairlap.scenarios.callables.result import InProcessComparison
from fairlap.verdict.blocks import require_between

_MOST_SEED = 2**31 - 1
_FEWEST_CALLABLES = 2
_LEAST_BUDGET_S = 0.001  # of a point that comes when all is spent: it ends before its first block

Callables: TypeAlias = Mapping[str, Callable[..., object]]
Report: TypeAlias = Callable[[str], None]
ComparePoint: TypeAlias = Callable[..., InProcessComparison]
MeasureRoofs: TypeAlias = Callable[[], Roofs]


@dataclass(frozen=True)
class _Setting:
    """What all points share."""

    callables: Callables
    inputs: PointInputs
    compare: ComparePoint
    options: Mapping[str, Any]
    roofs: Roofs | None
    why_no_roofs: str


def compare_over(
    callables: Callables,
    *,
    inputs: Draw,
    axes: Mapping[str, str | Sequence[object]],
    bytes_per_call: Declared | None = None,
    flops_per_call: Declared | None = None,
    baseline: str | None = None,
    budget: float | None = None,
    seed: int | None = None,
    alpha: float = 0.05,
    report: Report = lambda text: None,
    compare_point: ComparePoint = compare,
    roofs: MeasureRoofs | None = None,
    **options: Any,
) -> ComparisonOverAxes:
    """Compare callables by name at every combination of the values of ``axes``, in this process.

    ``inputs`` draws the arguments of one call: ``draw(rng, n=1024)`` returns a tuple of positional ones, a mapping of
    keywords, or a single one. Each axis is a parameter of it, with a sequence of values or a text such as
    ``"1K..1M:x2"``, ``"10..100:+10"`` or ``"float32,float64"``; K, M and G are powers of 1024. ``dtype`` and ``layout``
    (contiguous, transposed, strided) that it does not take are applied to the NumPy arrays that it returns.

    ``budget`` is in seconds and for all points together: 2 for each by default. What a point leaves is shared by those
    after it. ``baseline`` is the callable that ratios are of: the first by default. At each point the error rate is
    ``alpha`` divided by the number of points, so that it holds for all verdicts together.

    ``bytes_per_call`` and ``flops_per_call`` take axes by name and return what one call has to do; then the result has
    the share of the nearer roof of this machine. Further options, such as ``margin``, go to
    :func:`fairlap.scenarios.callables.in_process.compare`.
    """
    began_s = time.perf_counter()
    all_axes = axes_of(axes)
    baseline = _checked_baseline(callables, baseline)
    require_between("alpha", alpha, 0.0, 1.0)
    seed = secrets.randbelow(_MOST_SEED) if seed is None else whole_number("seed", seed, least=0, most=_MOST_SEED)
    drawn = point_inputs(inputs, all_axes, seed)
    amounts = [
        declared_at_points("bytes", bytes_per_call, all_axes),
        declared_at_points("flops", flops_per_call, all_axes),
    ]
    points = list(points_of(all_axes))
    measured, why_no_roofs = None, ""
    if bytes_per_call is not None or flops_per_call is not None:
        measured, why_no_roofs = _measured_roofs(roofs or _roofs_of_this_machine, report)
    options = {**options, "alpha": alpha / len(points), "seed": seed}
    setting = _Setting(callables, drawn, compare_point, options, measured, why_no_roofs)
    budget_s = _budget_s(budget, options, len(points))
    found: dict[int, PointResult] = {}
    interrupted = False
    order = random.Random(seed).sample(range(len(points)), len(points))
    measuring_s = time.perf_counter()
    for done, place in enumerate(order):
        report(f"point {done + 1} of {len(points)}: {point_text(points[place])}")
        left_s = (budget_s - (time.perf_counter() - measuring_s)) / (len(points) - done)
        work = DeclaredWork(*(each[place] for each in amounts))
        try:
            found[place] = _point(setting, points[place], work, max(left_s, _LEAST_BUDGET_S))
        except KeyboardInterrupt:
            interrupted = True
        comparison = found[place].comparison if place in found else None
        if interrupted := interrupted or (comparison is not None and comparison.interrupted):
            break
    return _result(callables, baseline, all_axes, points, found, alpha, seed, began_s, measured, interrupted)


def _point(setting: _Setting, point: Point, work: DeclaredWork, budget_s: float) -> PointResult:
    try:
        arguments = setting.inputs.at(point)
        ready, excluded = _callables_that_run(bound(setting.callables, arguments))
        work = DeclaredWork(work.bytes_per_call, work.flops_per_call, number_type_of(point, arguments))
        if len(ready) < _FEWEST_CALLABLES:
            why = f"no comparison at {point_text(point)}: it needs two callables that run"
            return PointResult(point, None, work, {}, excluded, why, "E_CALLABLE_RAISED")
        budget = {} if math.isinf(budget_s) else {"budget": budget_s}
        comparison = setting.compare(ready, **budget, **setting.options)
    except FairlapError as error:
        return PointResult(point, None, work, failed=str(error), code=error.code)
    medians_ns = {row.name: row.median_ns for row in comparison.rows if row.name not in comparison.excluded}
    shares = roof_shares(work, medians_ns, setting.roofs, setting.why_no_roofs)
    return PointResult(point, comparison, work, shares, excluded)


def _callables_that_run(
    callables: Mapping[str, Callable[[], object]],
) -> tuple[dict[str, Callable[[], object]], dict[str, str]]:
    """Call each once: one that raises at this point takes the others with it otherwise."""
    ready, excluded = {}, {}
    for name, call in callables.items():
        try:
            call()
        except Exception as error:
            excluded[name] = f"{name} raised {described(error)}"
        else:
            ready[name] = call
    return ready, excluded


def _result(
    callables: Callables,
    baseline: str,
    axes: tuple[Axis, ...],
    points: Sequence[Point],
    found: Mapping[int, PointResult],
    alpha: float,
    seed: int,
    began_s: float,
    roofs: Roofs | None,
    interrupted: bool,
) -> ComparisonOverAxes:
    results = tuple(
        found.get(place, PointResult(point, None, failed="not measured")) for place, point in enumerate(points)
    )
    failed = [each for each in results if each.code]
    if found and len(failed) == len(points):
        raise InvalidRequest(failed[0].reasons[-1] if failed[0].excluded else failed[0].failed, code=failed[0].code)
    names, size_axis = tuple(callables), size_axis_of(axes)
    return ComparisonOverAxes(
        callables=names,
        baseline=baseline,
        axes=axes,
        size_axis=size_axis,
        points=results,
        costs=costs_of(results, size_axis, names),
        crossings=crossings_of(results, size_axis, names),
        alpha=alpha,
        seed=seed,
        elapsed_s=time.perf_counter() - began_s,
        roof_threads=roofs.threads if roofs else None,
        interrupted=interrupted,
        ended_early=f"interrupted after {len(found)} of {len(points)} points" if interrupted else "",
    )


def _checked_baseline(callables: Callables, baseline: str | None) -> str:
    if not isinstance(callables, Mapping) or len(callables) < _FEWEST_CALLABLES:
        raise InvalidRequest('pass at least two callables by name, such as compare_over({"a": f, "b": g}, ...)')
    if baseline is None:
        return next(iter(callables))
    if baseline not in callables:
        raise InvalidRequest(f"baseline={shown(baseline)} is not one of the callables")
    return baseline


def _budget_s(budget: float | None, options: Mapping[str, Any], points: int) -> float:
    """Blocks or a target that are asked for end a point by themselves."""
    if budget is not None:
        return positive_number("budget", budget)
    return math.inf if options.get("blocks") or options.get("target") else BUDGET_S * points


def _measured_roofs(measure: MeasureRoofs, report: Report) -> tuple[Roofs | None, str]:
    report("measuring the roofs of this machine, which is done once and takes some seconds")
    try:
        return measure(), ""
    except FairlapError as error:
        return None, f"the roofs could not be measured: {error}"


def _roofs_of_this_machine() -> Roofs:
    from fairlap.machine.roofs import roofs_of, usable_cores

    return roofs_of(len(usable_cores()))

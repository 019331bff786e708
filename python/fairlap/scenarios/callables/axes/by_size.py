"""Curves by size: for every combination of the other axes, the fitted cost of each callable and where two cross."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from fairlap import verdict
from fairlap.scenarios.callables.axes.axis import Axis, Point
from fairlap.scenarios.callables.axes.result import CallableCost, CurveCrossing, PointResult
from fairlap.verdict.blocks import Floats

_FEWEST_SIZES = 2


def size_axis_of(axes: Sequence[Axis]) -> str:
    """Choose the axis of numbers with the most values, the first of several; empty where none has two."""
    numeric = [axis for axis in axes if axis.is_numeric and len(axis.values) >= _FEWEST_SIZES]
    return max(numeric, key=lambda axis: len(axis.values)).name if numeric else ""


def curves(points: Sequence[PointResult], size_axis: str) -> Iterator[tuple[Point, list[PointResult]]]:
    """Group the points by the values of the other axes, in the order of the points."""
    found: dict[tuple[tuple[str, object], ...], list[PointResult]] = {}
    others: dict[tuple[tuple[str, object], ...], Point] = {}
    for each in points:
        rest = {name: value for name, value in each.point.items() if name != size_axis}
        key = tuple(rest.items())
        others[key] = rest
        found.setdefault(key, []).append(each)
    for key, of_curve in found.items():
        yield others[key], of_curve


def costs_of(points: Sequence[PointResult], size_axis: str, callables: Sequence[str]) -> tuple[CallableCost, ...]:
    return tuple(
        _cost(name, others, curve, size_axis)
        for others, curve in (curves(points, size_axis) if size_axis else ())
        for name in callables
    )


def _cost(name: str, others: Point, curve: Sequence[PointResult], size_axis: str) -> CallableCost:
    timed = [(float(each.point[size_axis]), times) for each in curve if (times := _times_ns(each, name)) is not None]
    try:
        found = verdict.cost_by_size([times for _, times in timed], [size for size, _ in timed])
    except verdict.NoCost as error:
        return CallableCost(name, others, None, str(error))
    return CallableCost(name, others, found)


def _times_ns(found: PointResult, name: str) -> Floats | None:
    """In its blocks; None where it was not timed, or not in full."""
    comparison = found.comparison
    if comparison is None or name in comparison.excluded:
        return None
    return next((np.asarray(row.block_medians_ns) for row in comparison.rows if row.name == name), None)


def crossings_of(points: Sequence[PointResult], size_axis: str, callables: Sequence[str]) -> tuple[CurveCrossing, ...]:
    return tuple(
        CurveCrossing(others, crossing)
        for others, curve in (curves(points, size_axis) if size_axis else ())
        for a, b in combinations(callables, 2)
        for crossing in verdict.crossings(
            [float(each.point[size_axis]) for each in curve], [each.comparison_of(a, b) for each in curve]
        )
    )

"""Curves by size: for every combination of the other axes, the fitted cost of each callable and where two cross."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from fairlap import verdict
from fairlap.scenarios.callables.axes.axis import Axis, Point, Value
from fairlap.scenarios.callables.axes.result import CallableCost, CurveCrossing, PointResult

_FEWEST_SIZES = 2


def size_axis_of(axes: Sequence[Axis]) -> str:
    """Choose the axis of numbers with the most values, the first of several; empty where none has two."""
    numeric = [axis for axis in axes if axis.is_numeric and len(axis.values) >= _FEWEST_SIZES]
    return max(numeric, key=lambda axis: len(axis.values)).name if numeric else ""


def curves(points: Sequence[PointResult], size_axis: str) -> Iterator[tuple[Point, list[PointResult]]]:
    """Group the points by the values of the other axes, in the order of the points."""
    found: dict[tuple[tuple[str, Value], ...], list[PointResult]] = {}
    for each in points:
        rest = tuple((name, value) for name, value in each.point.items() if name != size_axis)
        found.setdefault(rest, []).append(each)
    for rest, of_curve in found.items():
        yield dict(rest), of_curve


def costs_of(points: Sequence[PointResult], size_axis: str, callables: Sequence[str]) -> tuple[CallableCost, ...]:
    return tuple(
        _cost(name, others, curve, size_axis)
        for others, curve in (curves(points, size_axis) if size_axis else ())
        for name in callables
    )


def _cost(name: str, others: Point, curve: Sequence[PointResult], size_axis: str) -> CallableCost:
    """Of the sizes that have all blocks, since blocks are drawn again as wholes."""
    most = max(each.blocks for each in curve)
    timed = {
        float(each.point[size_axis]): row.block_medians_ns
        for each in curve
        if each.blocks == most and name not in each.excluded and (row := each.row(name)) is not None
    }
    try:
        times_ns = np.array(list(timed.values()), dtype=np.float64).reshape(len(timed), most).T
        return CallableCost(name, others, verdict.cost_by_size(times_ns, list(timed)))
    except verdict.NoCost as error:
        return CallableCost(name, others, None, str(error))


def crossings_of(points: Sequence[PointResult], size_axis: str, callables: Sequence[str]) -> tuple[CurveCrossing, ...]:
    return tuple(
        CurveCrossing(others, crossing)
        for others, curve in (curves(points, size_axis) if size_axis else ())
        for a, b in combinations(callables, 2)
        for crossing in verdict.crossings(
            [float(each.point[size_axis]) for each in curve], [each.between(a, b) for each in curve]
        )
    )

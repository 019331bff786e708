"""What ``fairlap.compare_over`` returns: a comparison at every point, the fitted costs, and where curves cross."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlap import quantity_text, verdict
from fairlap.scenarios.callables.axes.axis import Axis, Point, Value, point_text
from fairlap.scenarios.callables.axes.declared_work import DeclaredWork, RoofShare
from fairlap.scenarios.callables.result import InProcessComparison


@dataclass(frozen=True)
class PointResult:
    """``failed`` says why there is no comparison, with its ``code``; ``excluded`` has callables that raised here."""

    point: Point
    comparison: InProcessComparison | None
    work: DeclaredWork = field(default_factory=DeclaredWork)
    roof_shares: Mapping[str, RoofShare | str] = field(
        default_factory=dict
    )  # by callable; a text is the reason why there is none
    excluded: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""
    code: str = ""

    def comparison_of(self, a: str, b: str) -> verdict.Comparison | None:
        """With ``a`` as its subject; None where the two were not compared."""
        for each in self.comparison.comparisons if self.comparison else ():
            if {each.a, each.b} == {a, b}:
                return each if each.a == a else each.reversed()
        return None

    @property
    def reasons(self) -> list[str]:
        """Why something at this point is absent."""
        found = self.comparison
        of_comparison = [*found.excluded.values(), found.why_no_verdict] if found else []
        return [each for each in (self.failed, *self.excluded.values(), *of_comparison) if each]


@dataclass(frozen=True)
class CallableCost:
    """The fitted cost of one callable by size, or why there is none. ``others`` are the values of the other axes."""

    name: str
    others: Point
    cost: verdict.CostBySize | None
    absent: str = ""


@dataclass(frozen=True)
class CurveCrossing:
    """``crossing`` is in values of the size axis."""

    others: Point
    crossing: verdict.Crossing


@dataclass(frozen=True)
class ComparisonOverAxes:
    """Points are in the order of the axes. ``size_axis`` is empty where no axis has several numbers.

    All verdicts share one error rate: at each point the level is ``alpha`` divided by the number of points.
    """

    callables: tuple[str, ...]
    baseline: str
    axes: tuple[Axis, ...]
    size_axis: str
    points: tuple[PointResult, ...]
    costs: tuple[CallableCost, ...]
    crossings: tuple[CurveCrossing, ...]
    alpha: float
    seed: int
    elapsed_s: float
    roof_threads: int | None  # of the roofs that shares are of; None without them, or on a device
    interrupted: bool
    ended_early: str

    def at(self, **values: Value) -> PointResult:
        """Find the point with these values, such as ``at(n=1024)``; axes with one value may be left out."""
        found = [each for each in self.points if all(each.point.get(name) == value for name, value in values.items())]
        if len(found) == 1:
            return found[0]
        raise KeyError(
            f"{point_text(values)} names {quantity_text.count(len(found), 'point')}; give a value of each axis"
        )

    def to_dict(self, *, raw: bool = False) -> dict[str, Any]:
        """Plain values for JSON; with ``raw`` also the median of each block."""
        return {
            "callables": list(self.callables),
            "baseline": self.baseline,
            "axes": {axis.name: list(axis.values) for axis in self.axes},
            "size_axis": self.size_axis,
            "points": [_point_dict(each, raw) for each in self.points],
            "costs": [_cost_dict(each) for each in self.costs],
            "crossings": [{"others": dict(each.others), **_plain(each.crossing)} for each in self.crossings],
            "alpha": self.alpha,
            "seed": self.seed,
            "elapsed_s": self.elapsed_s,
            "roof_threads": self.roof_threads,
            "interrupted": self.interrupted,
            "ended_early": self.ended_early,
        }

    def __str__(self) -> str:
        points = quantity_text.count(len(self.points), "point")
        names = quantity_text.count(len(self.callables), "callable")
        lines = [f"{names} at {points} in {quantity_text.seconds(self.elapsed_s)}, seed {self.seed}"]
        for each in self.points:
            found = [
                str(verdict.sentence(compared))
                for name in self.callables
                if name != self.baseline and (compared := each.comparison_of(self.baseline, name)) is not None
            ]
            lines.append(f"  {point_text(each.point)}: {'; '.join([*found, *each.reasons])}")
        lines += [f"  {crossing_text(each, self.size_axis)}" for each in self.crossings]
        lines += [f"  {cost_text(each, self.size_axis)}" for each in self.costs]
        return "\n".join([*lines, *([f"  ! {self.ended_early}"] if self.ended_early else [])])

    __repr__ = __str__


def crossing_text(found: CurveCrossing, axis: str) -> str:
    each = found.crossing
    return (
        f"{each.faster_below} is faster up to {axis}={each.low:,g}, {each.faster_above} from {axis}={each.high:,g} on"
        f"{_others_text(found.others)}"
    )


def cost_text(found: CallableCost, axis: str) -> str:
    """Write ``a: time = 2.03 µs + 0.502 ns · n``, with intervals."""
    name = f"{found.name}{_others_text(found.others)}"
    if found.cost is None:
        return f"{name}: no fitted cost: {found.absent}"
    return f"{name}: time = {overhead_text(found.cost)} + {slope_text(found.cost, axis)}"


def overhead_text(cost: verdict.CostBySize) -> str:
    return quantity_text.duration_interval(cost.overhead_ns.value, cost.overhead_ns.low, cost.overhead_ns.high)


def slope_text(cost: verdict.CostBySize, axis: str) -> str:
    """``0.502 ns [0.498, 0.505] · n^1.31 [1.3, 1.32]``."""
    slope = f"{_figure(cost.slope_ns.value)} ns [{_figure(cost.slope_ns.low)}, {_figure(cost.slope_ns.high)}] · {axis}"
    return slope if cost.exponent is None else f"{slope}^{exponent_text(cost)}"


def exponent_text(cost: verdict.CostBySize) -> str:
    """Write 1 for a linear cost."""
    if cost.exponent is None:
        return "1"
    return quantity_text.ratio_interval(cost.exponent.value, cost.exponent.low, cost.exponent.high)


def _figure(value: float) -> str:
    return quantity_text.number(value)


def _others_text(others: Point) -> str:
    return f" ({point_text(others)})" if others else ""


def _point_dict(found: PointResult, raw: bool) -> dict[str, Any]:
    shares = {
        name: {"roof": None, "share": None, "absent": each}
        if isinstance(each, str)
        else {"roof": each.roof, "share": each.share, "absent": ""}
        for name, each in found.roof_shares.items()
    }
    return {
        "point": dict(found.point),
        "comparison": found.comparison.to_dict(raw=raw) if found.comparison else None,
        "bytes_per_call": found.work.bytes_per_call,
        "flops_per_call": found.work.flops_per_call,
        "roof_shares": shares,
        "excluded": dict(found.excluded),
        "failed": found.failed,
        "code": found.code,
    }


def _cost_dict(found: CallableCost) -> dict[str, Any]:
    cost = _plain(found.cost) if found.cost else None
    return {"name": found.name, "others": dict(found.others), "cost": cost, "absent": found.absent}


def _plain(value: object) -> dict[str, Any]:
    import msgspec

    own: dict[str, Any] = msgspec.to_builtins(value)
    return own

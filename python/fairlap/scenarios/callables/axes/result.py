"""What ``fairlap.compare_over`` returns: a comparison at every point, the fitted costs, and where curves cross."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairlap import quantity_text, verdict
from fairlap.scenarios.callables.answers.result import AnswersChecked
from fairlap.scenarios.callables.axes.axes_document import (
    AxesDocument,
    ComparedPoint,
    FittedCost,
    FoundCrossing,
    printed_shares,
)
from fairlap.scenarios.callables.axes.axis import Axis, Point, Value, point_text
from fairlap.scenarios.callables.axes.declared_work import DeclaredWork, RoofShare
from fairlap.scenarios.callables.comparison_document import printed_answers, printed_pair
from fairlap.scenarios.callables.result import CallableRow


@dataclass(frozen=True)
class PointResult:
    """``excluded`` has callables that are in no comparison; ``failed`` says why the point has no further blocks."""

    point: Point
    rows: tuple[CallableRow, ...] = ()
    comparisons: tuple[verdict.Comparison, ...] = ()
    blocks: int = 0
    work: DeclaredWork = field(default_factory=DeclaredWork)
    roof_shares: Mapping[str, RoofShare | str] = field(default_factory=dict)  # a text is why there is none
    excluded: Mapping[str, str] = field(default_factory=dict)
    why_no_verdict: str = ""
    failed: str = ""
    code: str = ""
    quantity: str = ""  # "wall_ns", "device_span_ns"; empty where nothing was timed
    answers: AnswersChecked | None = None  # None where nothing was timed

    def between(self, a: str, b: str) -> verdict.Comparison | None:
        """Find the comparison with ``a`` as its subject; None where the two were not compared."""
        for each in self.comparisons:
            if {each.a, each.b} == {a, b}:
                return each if each.a == a else each.reversed()
        return None

    def row(self, name: str) -> CallableRow | None:
        return next((row for row in self.rows if row.name == name), None)

    def printed(self, *, raw: bool) -> ComparedPoint:
        return ComparedPoint(
            point=dict(self.point),
            rows=[each.printed(raw=raw) for each in self.rows],
            comparisons=[printed_pair(each) for each in self.comparisons],
            blocks=self.blocks,
            bytes_per_call=self.work.bytes_per_call,
            flops_per_call=self.work.flops_per_call,
            roof_shares=printed_shares(self.roof_shares),
            excluded=dict(self.excluded),
            why_no_verdict=self.why_no_verdict,
            answers=None if self.answers is None else printed_answers(self.answers),
            failed=self.failed,
            code=self.code,
        )

    @property
    def reasons(self) -> list[str]:
        """Why something at this point is absent."""
        return [each for each in (self.failed, *self.excluded.values(), self.why_no_verdict) if each]


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
    quantity: str  # of all times
    alpha: float
    blocks: int
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

    @property
    def wrong(self) -> set[str]:
        """Callables that answered wrong at a point."""
        return {name for each in self.points if each.answers for name in each.answers.wrong}

    @property
    def answers_text(self) -> str:
        """Describe how answers were compared, at the point where the fewest were."""
        checked = [each.answers for each in self.points if each.answers is not None]
        if not checked:
            return "Answers not compared."
        text = min(checked, key=lambda each: (each.compared != "not", each.checked_calls)).text
        return f"At every point: {text}." if len(self.points) > 1 else f"{text[0].upper()}{text[1:]}."

    def to_dict(self, *, raw: bool = False) -> dict[str, Any]:
        """Plain values for JSON; with ``raw`` also the median of each block."""
        plain: dict[str, Any] = msgspec.to_builtins(self.document(raw=raw))
        return plain

    def document(self, *, raw: bool = False) -> AxesDocument:
        """As ``fairlap time A B --axis ... --json`` prints it; with ``raw`` also the median of each block."""
        return AxesDocument(
            callables=list(self.callables),
            baseline=self.baseline,
            axes={axis.name: list(axis.values) for axis in self.axes},
            size_axis=self.size_axis,
            points=[each.printed(raw=raw) for each in self.points],
            costs=[FittedCost(each.name, dict(each.others), each.cost, each.absent) for each in self.costs],
            crossings=[FoundCrossing(dict(each.others), **vars(each.crossing)) for each in self.crossings],
            quantity=self.quantity,
            alpha=self.alpha,
            blocks=self.blocks,
            seed=self.seed,
            elapsed_s=self.elapsed_s,
            roof_threads=self.roof_threads,
            interrupted=self.interrupted,
            ended_early=self.ended_early,
        )

    def __str__(self) -> str:
        points = quantity_text.count(len(self.points), "point")
        names = quantity_text.count(len(self.callables), "callable")
        blocks = quantity_text.count(self.blocks, "block")
        lines = [f"{names} at {points}, {blocks} in {quantity_text.seconds(self.elapsed_s)}, seed {self.seed}"]
        for each in self.points:
            found = [
                verdict_text(compared)
                for name in self.callables
                if name != self.baseline and (compared := each.between(self.baseline, name)) is not None
            ]
            lines.append(f"  {point_text(each.point)}: {'; '.join([*found, *each.reasons])}")
        lines += [f"  {crossing_text(each, self.size_axis)}" for each in self.crossings]
        lines += [f"  {each}" for each in cost_lines(self)]
        return "\n".join([*lines, *([f"  {self.ended_early}"] if self.ended_early else []), f"  {self.answers_text}"])

    __repr__ = __str__


def verdict_text(compared: verdict.Comparison) -> str:
    """Write the claim and its interval."""
    found = verdict.sentence(compared)
    return f"{'inconclusive: ' if found.inconclusive else ''}{found.claim} {found.interval}".rstrip()


def cost_lines(result: ComparisonOverAxes) -> list[str]:
    """One for each cost, or a single one where all are absent for the same reason."""
    reasons = {each.absent for each in result.costs}
    if len(reasons) == 1 and (reason := reasons.pop()):
        return [f"no fitted cost: {reason}"]
    return [cost_text(each, result.size_axis) for each in result.costs]


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
    law = f"{overhead_text(found.cost)} + {slope_text(found.cost, axis)}"
    return f"{name}: time = {law}, within {quantity_text.share(found.cost.largest_miss)} of every size"


def overhead_text(cost: verdict.CostBySize) -> str:
    """In the unit of its upper end, since it may be 0."""
    overhead = cost.overhead_ns
    unit_ns = quantity_text.common_unit_ns([overhead.high])
    return " ".join(quantity_text.duration_and_bounds(overhead.value, overhead.low, overhead.high, unit_ns=unit_ns))


def slope_text(cost: verdict.CostBySize, axis: str) -> str:
    """``0.502 ns [0.498, 0.505] · n^1.31 [1.3, 1.32]``."""
    slope = f"{_figure(cost.slope_ns.value)} ns [{_figure(cost.slope_ns.low)}, {_figure(cost.slope_ns.high)}] · {axis}"
    if (power := cost.exponent) is None:
        return slope
    return f"{slope}^{quantity_text.ratio_interval(power.value, power.low, power.high)}"


def _figure(value: float) -> str:
    return quantity_text.number(value)


def _others_text(others: Point) -> str:
    return f" ({point_text(others)})" if others else ""

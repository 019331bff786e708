"""The bytes and operations of a call, as declared, and how much of the machine's roofs each callable reached.

Nothing is counted here: without a declaration there is no share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from fairlap.errors import described, shown
from fairlap.machine.hardware.roofs import LEVELS, Roofs
from fairlap.scenarios.callables.axes.axis import Axis, BadAxis, Point, nearest, point_text, points_of
from fairlap.scenarios.callables.axes.point_inputs import DTYPE, arrays_in, parameters_of

Declared = Callable[..., object]

MORE_THAN_POSSIBLE = 1.1
"""Of a roof: a call that reaches more did less than was declared, or the roofs were measured in bad seconds."""

_NUMBER_TYPES = {
    **{"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "complex64": "fp32"},
    **{"float64": "fp64", "complex128": "fp64", "int8": "int8", "uint8": "int8"},
}
_NS_PER_S = 1e9


@dataclass(frozen=True)
class DeclaredWork:
    """Of one call at one point; None where it is not declared."""

    bytes_per_call: float | None = None
    flops_per_call: float | None = None
    number_type: str = ""  # "fp32"; empty where the inputs do not show one


@dataclass(frozen=True)
class RoofShare:
    """The nearer roof, and how much of it a callable reached."""

    roof: str  # "fp32", "L2", "memory"
    share: float

    @property
    def is_impossible(self) -> bool:
        return self.share > MORE_THAN_POSSIBLE


def declared_at_points(name: str, declared: Declared | None, axes: Sequence[Axis]) -> list[float | None]:
    """Ask for the amount of every point before anything runs. The function takes any of the axes by name."""
    points = list(points_of(axes))
    if declared is None:
        return [None] * len(points)
    parameters = parameters_of(declared, name)
    names = [each.name for each in parameters]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        names = [axis.name for axis in axes]
    for each in parameters:
        if each.default is each.empty and each.name not in points[0] and each.kind is each.POSITIONAL_OR_KEYWORD:
            raise BadAxis(f"{name} needs {each.name!r}, which is not an axis{nearest(each.name, list(points[0]))}")
    return [_amount(name, declared, {key: point[key] for key in names if key in point}) for point in points]


def _amount(name: str, declared: Declared, given: Point) -> float:
    try:
        amount: object = declared(**given)
    except Exception as error:
        raise BadAxis(f"{name} at {point_text(given)} raised {described(error)}") from error
    if isinstance(amount, bool) or not isinstance(amount, Real | np.number) or not 0 < float(amount) < float("inf"):
        raise BadAxis(f"{name} at {point_text(given)} must be a number above 0 (got {shown(amount)})")
    return float(amount)


def number_type_of(point: Point, arguments: object) -> str:
    """Of the point, or of the widest floating arrays among the arguments."""
    if DTYPE in point:
        return _NUMBER_TYPES.get(str(point[DTYPE]), "")
    floating = [array.dtype for array in arrays_in(arguments) if array.dtype.kind in "fc"]
    return _NUMBER_TYPES.get(max(floating, key=lambda each: each.itemsize).name, "") if floating else ""


def roof_share(work: DeclaredWork, call_ns: float, roofs: Roofs) -> RoofShare | str:
    """How much of the nearer roof a call reached, or the reason why that is not known."""
    least: dict[str, float] = {}
    if work.flops_per_call is not None:
        if work.number_type not in roofs.operations_per_s:
            return _no_roof(work.number_type, roofs)
        least[work.number_type] = work.flops_per_call / roofs.operations_per_s[work.number_type].value * _NS_PER_S
    if work.bytes_per_call is not None:
        if roofs.bytes_per_s.keys().isdisjoint(LEVELS):
            return "the roofs of memory were not measured"
        level, memory_ns = roofs.time_of_bytes(work.bytes_per_call, work.bytes_per_call, call_ns)
        least[level] = memory_ns
    nearer = max(least, key=lambda roof: least[roof])
    return RoofShare(nearer, least[nearer] / call_ns)


def _no_roof(number_type: str, roofs: Roofs) -> str:
    if not number_type:
        return "the inputs hold no floating-point array and no axis dtype, so their roof is not known"
    return f"the roof of {number_type} was not measured: {roofs.absent.get(number_type, 'it is not known why')}"


def roof_shares(
    work: DeclaredWork, medians_ns: Mapping[str, float], roofs: Roofs | None, why_no_roofs: str
) -> dict[str, RoofShare | str]:
    """By callable; empty where nothing was declared."""
    if work.bytes_per_call is None and work.flops_per_call is None:
        return {}
    if roofs is None:
        return dict.fromkeys(medians_ns, why_no_roofs)
    return {name: roof_share(work, median_ns, roofs) for name, median_ns in medians_ns.items()}

"""A function from one row of numbers to one number or to a row, whose derivatives race.

It is a model: in mode infer its call is the function, in the modes of derivatives a derivative at drawn points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from fairlap.models.spec import BATCH, STANDARD_NORMAL, Constant, Fill, Interface, Spec, Tensor, Tolerance, Weight
from fairlap.request.work import Mode

POINT, ALONG = "point", "along"
"""The inputs: where it is differentiated, and the tangent of jvp, hvp and third, or the cotangent of vjp."""

VALUE = "value"
FORWARD, REVERSE = "forward", "reverse"

Value = Callable[[Any, Any, Any], Any]

_COSINE, _OFF, _NORM = 0.9999, 1e-3, 2e-4  # of a derivative in float32


@dataclass(frozen=True)
class Function:
    """``value`` takes a point, the module of its arrays (numpy, jax.numpy, torch, or what TensorFlow has) and weights.

    It works along the last axis of the point, and there may be others before it; it gives a number for each point, or
    a row where ``outputs`` says how many. The modules have tanh, exp, log, sum, mean and reshape.
    """

    name: str
    task: str
    published: str
    value: Value
    numbers: int  # of a point
    outputs: int | None = None
    fill: Fill = STANDARD_NORMAL
    weights: tuple[Weight, ...] = ()  # not trained: it is differentiated by its point
    of_one: bool = False  # ``value`` takes a single point: there are no axes before its own
    size: float = 1.0  # of its derivatives, so that elements near 0 may be off by a thousandth of it

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Only a function with one output has second and third derivatives here."""
        return ("infer", "jvp", "vjp", "jacobian", *(("hvp", "hessian", "third") if self.outputs is None else ()))

    def spec(self) -> Spec:
        point = (BATCH, self.numbers)
        row = () if self.outputs is None else (self.outputs,)
        at = Tensor(POINT, point, self.fill)

        def along(shape: tuple[int | str, ...]) -> Tensor:
            return Tensor(ALONG, shape)

        def out(name: str, *shape: int) -> Tensor:
            return Tensor(name, (BATCH, *shape), Constant(0.0))

        value = out(VALUE, *row)
        in_mode: dict[Mode, Interface] = {
            "jvp": Interface((at, along(point)), (value, out("jvp", *row))),
            "vjp": Interface((at, along((BATCH, *row))), (value, out("vjp", self.numbers))),
            "jacobian": Interface((at,), (out("jacobian", *row, self.numbers),)),
            "hvp": Interface((at, along(point)), (out("hvp", self.numbers),)),
            "hessian": Interface((at,), (out("hessian", self.numbers, self.numbers),)),
            "third": Interface((at, along(point)), (out("third", self.numbers),)),
        }
        return Spec(
            name=self.name,
            task=self.task,
            inputs=(at,),
            outputs=(value,),
            weights=self.weights,
            parameters=0,
            gmacs_per_item=None,
            published=self.published,
            modes=self.modes,
            precisions=("fp32",),
            tolerances={"fp32": Tolerance(_COSINE, _OFF * self.size, _OFF, _NORM)},
            interfaces={mode: in_mode[mode] for mode in self.modes if mode in in_mode},
        )


class OfFunction:
    """What the implementations in all libraries have."""

    directions: ClassVar[dict[Mode, tuple[str, ...]]]  # in which it can take a derivative, the usual one first

    def __init__(self, spec: ModuleType) -> None:
        self.function: Function = spec.FUNCTION
        self.mode: Mode = "infer"
        self._direction = ""

    def differentiate(self, mode: Mode, direction: str = "") -> None:
        self.mode, self._direction = mode, direction

    @property
    def direction(self) -> str:
        return self._direction or self.directions[self.mode][0]

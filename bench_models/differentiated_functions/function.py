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

POINT, ALONG, TARGET = INPUTS = ("point", "along", "target")
"""The inputs: where it is differentiated; the tangent of jvp, hvp and third, or the cotangent of vjp; and of
per-sample what the value should be."""

VALUE, SAMPLE_GRADIENT = "value", "sample_gradient/"
FORWARD, REVERSE = "forward", "reverse"

Value = Callable[[Any, Any, Any], Any]

_COSINE, _OFF, _NORM = 0.9999, 1e-3, 2e-4  # of a derivative in float32


@dataclass(frozen=True)
class FixedPoint:
    """Where the value of a function is where ``step`` comes to rest; ``slope`` is the Jacobian of a step there."""

    step: Callable[[Any, Any, Any, Any], Any]  # of where it is, a point, the module of arrays, and weights
    slope: Callable[[Any, Any, Any, Any], Any]
    steps: int

    def found(self, start: Any, point: Any, arrays: Any, weights: Any) -> Any:
        at = start
        for _ in range(self.steps):
            at = self.step(at, point, arrays, weights)
        return at


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
    by_sample: bool = False  # whether the loss of each point may be differentiated by the weights
    fixed_point: FixedPoint | None = None  # which libraries differentiate implicitly, and not by its steps
    size: float = 1.0  # of its derivatives, so that elements near 0 may be off by a thousandth of it

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Only a function with one output has second and third derivatives here."""
        second: tuple[Mode, ...] = ("hvp", "hessian", "third") if self.outputs is None else ()
        return ("infer", "jvp", "vjp", "jacobian", *second, *(("per-sample",) if self.by_sample else ()))

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
            "per-sample": Interface(
                (at, Tensor(TARGET, (BATCH, *row))),
                tuple(out(SAMPLE_GRADIENT + weight.name, *weight.shape) for weight in self.weights),
            ),
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
    stop_gradient: ClassVar[Callable[[Any], Any]]  # of an array, what no derivative passes

    def __init__(self, spec: ModuleType) -> None:
        self.function: Function = spec.FUNCTION
        self.mode: Mode = "infer"
        self._direction = ""

    def differentiate(self, mode: Mode, direction: str = "") -> None:
        self.mode, self._direction = mode, direction

    @property
    def value(self) -> Value:
        """The function, from which derivatives are taken."""
        of_fixed_point = self.function.fixed_point is not None and self.mode != "infer"
        return self._implicit_value if of_fixed_point else self.function.value

    def _implicit_value(self, point: Any, arrays: Any, weights: Any) -> Any:
        """Give a value whose derivative is that of the implicit function theorem.

        At a fixed point z = f(z, x) the implicit function theorem has dz = (1 - f_z)^-1 f_x dx. A step of Newton's from
        there moves nothing, and has this derivative where only its f(z, x) is differentiated.
        """
        fixed_point, stop = self.function.fixed_point, type(self).stop_gradient
        assert fixed_point is not None
        at = stop(self.function.value(point, arrays, weights))
        off = fixed_point.step(at, point, arrays, weights) - at
        rest = arrays.eye(at.shape[-1]) - stop(fixed_point.slope(at, point, arrays, weights))
        return at + self.solved(arrays, rest, off[..., None])[..., 0]

    def solved(self, arrays: Any, matrix: Any, right_side: Any) -> Any:
        return arrays.linalg.solve(matrix, right_side)

    @property
    def direction(self) -> str:
        return self._direction or self.directions[self.mode][0]

    @property
    def inputs_per_output(self) -> float | None:
        """Of a whole Jacobian, which takes a pass for each of the one or each of the other."""
        return self.function.numbers / (self.function.outputs or 1) if self.mode == "jacobian" else None

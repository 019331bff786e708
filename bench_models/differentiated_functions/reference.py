"""The reference of derivatives, in float64: first ones by complex steps, second and third ones by differences of those.

A complex step has no cancellation, so first derivatives are right to rounding. The central difference of two of them
is right to about nine digits, and so is the second difference of five. Gradients of each sample follow the chain rule,
one sample after the other. Tests compare them with closed forms, with derivatives by mpmath, and with complex steps.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.differentiated_functions.function import (
    ALONG,
    POINT,
    SAMPLE_GRADIENT,
    TARGET,
    VALUE,
    OfFunction,
)
from fairlap.models.arrays import Arrays
from fairlap.models.checks.differentiation import gradients

Array = npt.NDArray[Any]

_TINY = 1e-100
_DIFFERENCE = 2.0**-17  # near the fourth root of the rounding error, which loses the fewest digits
_SECOND_DIFFERENCE = 2.0**-9  # near the sixth root, where an error of its fourth power is as large as that of rounding
_FIVE = {-2: -1 / 12, -1: 4 / 3, 0: -5 / 2, 1: 4 / 3, 2: -1 / 12}  # a second derivative, of fourth order


class Implementation(OfFunction):
    directions: ClassVar = {}

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        if self.mode == "per-sample":
            return self._by_sample(weights, inputs)
        alongs = inputs.get(ALONG, [None] * len(inputs[POINT]))
        found = [self._of_point(weights, point, along) for point, along in zip(inputs[POINT], alongs, strict=True)]
        return {name: np.array([each[name] for each in found]) for name in found[0]}

    def _by_sample(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        held = {name: array.astype(np.float64) for name, array in weights.items()}

        def gradient(point: Array, target: Array) -> dict[str, Array]:
            def loss(traced: Any) -> Any:
                off = self.function.value(point[None], np, traced) - target[None]
                return (off * off).mean()

            return gradients(loss, held)[1]

        found = [gradient(*each) for each in zip(inputs[POINT], inputs[TARGET], strict=True)]
        return {SAMPLE_GRADIENT + name: np.array([each[name] for each in found]) for name in held}

    def _of_point(self, weights: Arrays, point: Array, along: Any) -> dict[str, Any]:
        value = self._value(weights, point)
        match self.mode:
            case "infer":
                return {VALUE: value}
            case "jvp":
                return {VALUE: value, "jvp": self._value(weights, point + 1j * _TINY * along).imag / _TINY}
            case "vjp":
                return {VALUE: value, "vjp": np.tensordot(along, self._jacobian(weights, point), np.ndim(along))}
            case "jacobian":
                return {"jacobian": self._jacobian(weights, point)}
            case "hvp":
                return {"hvp": self._slope_of_slope(weights, point, along)}
            case "hessian":
                columns = [self._slope_of_slope(weights, point, each) for each in np.eye(len(point))]
                return {"hessian": np.array(columns)}
            case "third":
                return {"third": self._second_slope_of_slope(weights, point, along)}
            case _:
                raise ValueError(self.mode)

    def value_at(self, point: Array) -> Any:
        """Of a function without weights."""
        return self._value({}, point)

    def _value(self, weights: Arrays, point: Array) -> Any:
        if self.function.of_one and point.ndim > 1:
            return np.array([self.function.value(each, np, weights) for each in point])
        return self.function.value(point, np, weights)

    def _jacobian(self, weights: Arrays, point: Array) -> Array:
        """Step along all numbers at once: a row for each, which becomes a column."""
        steps = point + 1j * _TINY * np.eye(len(point))
        slopes: Array = np.moveaxis(self._value(weights, steps).imag, 0, -1) / _TINY
        return slopes

    def _slope_of_slope(self, weights: Arrays, point: Array, along: Array) -> Array:
        step = _DIFFERENCE / max(float(np.abs(along).max()), 1e-300)
        ahead, behind = (self._jacobian(weights, point + sign * step * along) for sign in (1, -1))
        return (ahead - behind) / (2 * step)

    def _second_slope_of_slope(self, weights: Arrays, point: Array, along: Array) -> Array:
        step = _SECOND_DIFFERENCE / max(float(np.abs(along).max()), 1e-300)
        parts = [share * self._jacobian(weights, point + place * step * along) for place, share in _FIVE.items()]
        found: Array = np.sum(parts, axis=0) / step**2
        return found

"""Derivatives in TensorFlow: by gradient tapes and forward accumulators, of all points together."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import tensorflow as tf
from fairlap.bench_models.differentiated_functions.function import FORWARD, INPUTS, REVERSE, OfFunction
from fairlap.models.arrays import Arrays

Derivative = Callable[..., tuple[Any, ...]]

ARRAYS = SimpleNamespace(
    tanh=tf.tanh,
    exp=tf.exp,
    log=tf.math.log,
    sum=tf.reduce_sum,
    mean=tf.reduce_mean,
    reshape=tf.reshape,
    zeros_like=tf.zeros_like,
    eye=tf.eye,
    swapaxes=tf.experimental.numpy.swapaxes,
    linalg=tf.linalg,
)


class Held(tf.Module):
    def __init__(
        self, value: Callable[..., Any], weights: Arrays, dtype: Any, derivative: Callable[[Any, list[Any]], Derivative]
    ) -> None:
        super().__init__()
        self.variables_by_name = {name: tf.Variable(tf.cast(array, dtype)) for name, array in weights.items()}
        own = self.variables_by_name
        self._of_points = derivative(lambda points: value(points, ARRAYS, own), list(own.values()))

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any, ...]:
        return self._of_points(*(inputs[name] for name in INPUTS if name in inputs))


class Implementation(OfFunction):
    # A forward accumulator takes one tangent at a time, so whole matrices are taken in reverse alone.
    directions: ClassVar = {
        "infer": ("",),
        "jvp": (FORWARD,),
        "vjp": (REVERSE,),
        "jacobian": (REVERSE,),
        "hvp": (FORWARD, REVERSE),
        "hessian": (REVERSE,),
        "third": (FORWARD, REVERSE),
        "per-sample": (REVERSE,),
    }
    stop_gradient: ClassVar = staticmethod(tf.stop_gradient)

    def build(self, weights: Arrays, dtype: Any) -> Held:
        direction = self.direction
        function = self.function
        value = self.value
        if function.of_one:  # a user's, which gets TensorFlow's version of NumPy
            value = _of_each(value, tf.experimental.numpy)
        elif function.outputs is None:
            # Of products of matrices with more axes, oneDNN ended the process in batch_jacobian of TensorFlow 2.21.
            value = _of_each(value, ARRAYS)
        if self.mode == "per-sample":
            return Held(value, weights, dtype, _by_sample)
        derivative = _DERIVATIVES[self.mode]
        return Held(value, weights, dtype, lambda held, _: derivative(held, direction))

    def canonical(self, _name: str, array: Any) -> Any:
        return array


def _of_each(value: Callable[..., Any], arrays: Any) -> Callable[..., Any]:
    """Call it with one point after the other."""
    return lambda points, _arrays, weights: tf.stack([value(each, arrays, weights) for each in tf.unstack(points)])


def _by_sample(value: Any, variables: list[Any]) -> Derivative:
    def of_sample(sample: tuple[Any, Any]) -> list[Any]:
        point, target = sample
        with tf.GradientTape() as tape:
            off = value(point[None])[0] - target
            loss = tf.reduce_mean(off * off)
        found: list[Any] = tape.gradient(loss, variables)
        return found

    return lambda points, targets: tuple(tf.vectorized_map(of_sample, (points, targets)))


def _value(value: Any, _direction: str) -> Derivative:
    return lambda point: (value(point),)


def _jvp(value: Any, _direction: str) -> Derivative:
    def of_points(point: Any, along: Any) -> tuple[Any, ...]:
        with tf.autodiff.ForwardAccumulator(point, along) as forward:
            found = value(point)
        return found, forward.jvp(found)

    return of_points


def _vjp(value: Any, _direction: str) -> Derivative:
    def of_points(point: Any, along: Any) -> tuple[Any, ...]:
        with tf.GradientTape() as tape:
            tape.watch(point)
            found = value(point)
        return found, tape.gradient(found, point, output_gradients=along)

    return of_points


def _jacobian(value: Any, _direction: str) -> Derivative:
    def of_points(point: Any) -> tuple[Any, ...]:
        with tf.GradientTape() as tape:
            tape.watch(point)
            found = value(point)
        return (tape.gradient(found, point) if found.shape.rank == 1 else tape.batch_jacobian(found, point),)

    return of_points


def _slope(value: Any, point: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(point)
        found = value(point)
    return tape.gradient(found, point)


def _hvp(value: Any, direction: str) -> Derivative:
    def forward_over_reverse(point: Any, along: Any) -> tuple[Any, ...]:
        with tf.autodiff.ForwardAccumulator(point, along) as forward:
            slope = _slope(value, point)
        return (forward.jvp(slope),)

    def reverse_over_reverse(point: Any, along: Any) -> tuple[Any, ...]:
        with tf.GradientTape() as tape:
            tape.watch(point)
            slope = _slope(value, point)
        return (tape.gradient(slope, point, output_gradients=along),)

    return forward_over_reverse if direction == FORWARD else reverse_over_reverse


def _hessian(value: Any, _direction: str) -> Derivative:
    def of_points(point: Any) -> tuple[Any, ...]:
        with tf.GradientTape() as tape:
            tape.watch(point)
            slope = _slope(value, point)
        return (tape.batch_jacobian(slope, point),)

    return of_points


def _third(value: Any, direction: str) -> Derivative:
    def forward_twice(point: Any, along: Any) -> tuple[Any, ...]:
        with tf.autodiff.ForwardAccumulator(point, along) as outer:
            with tf.autodiff.ForwardAccumulator(point, along) as inner:
                slope = _slope(value, point)
            once = inner.jvp(slope)
        return (outer.jvp(once),)

    def reverse_twice(point: Any, along: Any) -> tuple[Any, ...]:
        with tf.GradientTape() as outer:
            outer.watch(point)
            with tf.GradientTape() as inner:
                inner.watch(point)
                slope = _slope(value, point)
            once = inner.gradient(slope, point, output_gradients=along)
        return (outer.gradient(once, point, output_gradients=along),)

    return forward_twice if direction == FORWARD else reverse_twice


_DERIVATIVES: dict[str, Any] = {
    "infer": _value,
    "jvp": _jvp,
    "vjp": _vjp,
    "jacobian": _jacobian,
    "hvp": _hvp,
    "hessian": _hessian,
    "third": _third,
}

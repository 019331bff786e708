"""The rates of a problem in TensorFlow: of the states of a batch, each of which is flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from fairlap.bench_models.initial_value_problems.problem import NO_WEIGHTS, OfProblem

ARRAYS = SimpleNamespace(roll=tf.roll, sum=tf.reduce_sum, tanh=tf.tanh)
"""What problems call by NumPy's names."""


class Implementation(OfProblem):
    def rates(self, weights: Mapping[str, Any] = NO_WEIGHTS) -> Callable[[Any, Any], Any]:
        named = {name: _Matrix(each) if len(each.shape) == 2 else each for name, each in weights.items()}
        of_components, shape = self.problem.rates_with(named), self.problem.start.shape

        def of_batch(time: Any, state: Any) -> Any:
            components = tf.unstack(tf.reshape(state, (-1, *shape)), axis=1)
            found = of_components(time, components, ARRAYS)
            whole = found[0] if len(found) == 1 else tf.stack(found, 1)
            return tf.reshape(whole, tf.shape(state))

        return of_batch


class _Matrix:
    """A weight that problems transpose by ``.T``, which TensorFlow's tensors lack."""

    def __init__(self, held: Any) -> None:
        self.T = tf.transpose(held)

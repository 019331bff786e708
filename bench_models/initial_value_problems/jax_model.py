"""The rates of a problem in JAX: of one item's state, which is flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
from fairlap.bench_models.initial_value_problems.problem import NO_WEIGHTS, OfProblem


class Implementation(OfProblem):
    def rates(self, weights: Mapping[str, Any] = NO_WEIGHTS) -> Callable[[Any, Any], Any]:
        of_components, shape = self.problem.rates_with(weights), self.problem.start.shape
        return lambda time, state: jnp.stack(of_components(time, tuple(state.reshape(shape)), jnp)).reshape(-1)

"""The rates of a problem in NumPy, as users of SciPy write them: of one item's state, which is flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from fairlap.bench_models.initial_value_problems.problem import NO_WEIGHTS, OfProblem


class Implementation(OfProblem):
    def rates(self, weights: Mapping[str, Any] = NO_WEIGHTS) -> Callable[[float, Any], Any]:
        of_components, shape = self.problem.rates_with(weights), self.problem.start.shape
        if len(shape) == 1:  # the components are numbers
            return lambda time, state: of_components(time, state, np)
        if shape[0] == 1:  # there is nothing to stack
            return lambda time, state: of_components(time, (state.reshape(shape[1:]),), np)[0].reshape(-1)
        return lambda time, state: np.stack(of_components(time, state.reshape(shape), np)).reshape(-1)

"""The rates of a problem in NumPy, as users of SciPy write them: of one item's state, which is flat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fairlap.bench_models.initial_value_problems.problem import OfProblem


class Implementation(OfProblem):
    def rates(self) -> Callable[[float, Any], Any]:
        of_components, shape = self.problem.rates, self.problem.start.shape
        if len(shape) == 1:  # the components are numbers
            return lambda time, state: of_components(time, state, np)
        return lambda time, state: np.stack(of_components(time, state.reshape(shape), np)).reshape(-1)

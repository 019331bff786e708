"""The rates of a problem in PyTorch: of the states of a batch, each of which is flat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from fairlap.bench_models.initial_value_problems.problem import OfProblem


class Implementation(OfProblem):
    def rates(self) -> Callable[[Any, Any], Any]:
        of_components, shape = self.problem.rates, self.problem.start.shape

        def of_batch(time: Any, state: Any) -> Any:
            components = state.reshape(-1, *shape).unbind(1)
            return torch.stack(of_components(time, components, torch), 1).reshape(state.shape)

        return of_batch

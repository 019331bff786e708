"""The rates of a problem in PyTorch: of the states of a batch, each of which is flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from fairlap.bench_models.initial_value_problems.problem import NO_WEIGHTS, OfProblem


class Implementation(OfProblem):
    def rates(self, weights: Mapping[str, Any] = NO_WEIGHTS) -> Callable[[Any, Any], Any]:
        of_components, shape = self.problem.rates_with(weights), self.problem.start.shape

        def of_batch(time: Any, state: Any) -> Any:
            components = state.reshape(-1, *shape).unbind(1)
            found = of_components(time, components, torch)
            whole = found[0] if len(found) == 1 else torch.stack(found, 1)  # stacking takes as long as a product
            return whole.reshape(state.shape)

        return of_batch

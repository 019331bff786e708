"""Adam on a gradient whose norm is limited, as NumPy and JAX take it; PyTorch has its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlap.bench_models.agents.ppo import DECAYS, EPSILON, LARGEST_NORM, NORM_EPSILON, RATE

Named = dict[str, Any]


def norm_of(gradient: Mapping[str, Any], arrays: Any) -> Any:
    return arrays.sqrt(sum((each * each).sum() for each in gradient.values()))


def moved(weights: Named, first: Named, second: Named, steps: Any, gradient: Named, arrays: Any) -> Any:
    """Give the weights, both moments and the norm of the gradient after a step; ``steps`` counts this one too."""
    norm = norm_of(gradient, arrays)
    factor = arrays.minimum(1.0, LARGEST_NORM / (norm + NORM_EPSILON))
    after: tuple[Named, Named, Named] = ({}, {}, {})
    for name, slope in gradient.items():
        limited = slope * factor
        one = DECAYS[0] * first[name] + (1 - DECAYS[0]) * limited
        two = DECAYS[1] * second[name] + (1 - DECAYS[1]) * limited * limited
        root = arrays.sqrt(two / (1 - DECAYS[1] ** steps)) + EPSILON
        after[0][name] = weights[name] - RATE * (one / (1 - DECAYS[0] ** steps)) / root
        after[1][name], after[2][name] = one, two
    return (*after, norm)

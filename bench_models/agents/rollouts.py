"""What agents do outside of their library: steps in NumPy, and what a policy is worth.

While an agent learns, an episode that ended starts over in the same step, from a newly drawn state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from fairlap.bench_models.agents.algorithm import (
    ACTIONS,
    ENDED,
    LAST,
    NOISE,
    OBSERVATIONS,
    REWARDS,
    STARTS,
    Algorithm,
    Array,
)
from fairlap.bench_models.environments.environment import Components, Environment

EVALUATED = 64
_SEED_OF_EVALUATION = 2026

Act = Callable[[Array, Array], tuple[Array, dict[str, Array]]]
"""From observations and the noise of the step to actions, and to what else is kept of it."""


def advanced(
    environment: Environment, first: Components, components: Components, elapsed: Any, action: Any, arrays: Any
) -> tuple[Components, Any, Any, Any]:
    """Take a step, and start episodes over that it ended."""
    reached, reward, over = environment.advance(components, action, arrays)
    ended = over | (elapsed + 1 >= environment.most_steps)
    after = tuple(arrays.where(ended, *both) for both in zip(first, reached, strict=True))
    return after, arrays.where(ended, 0, elapsed + 1), reward, ended


def observed(environment: Environment, components: Components, arrays: Any) -> Any:
    return arrays.stack(environment.observe(components, arrays), -1)


@dataclass
class Environments:
    """The state of all environments in NumPy, and the seconds that went into steps and into the policy."""

    environment: Environment
    components: Components
    elapsed: Array
    stepping_s: float = 0.0
    inferring_s: float = 0.0

    @classmethod
    def begun(cls, environment: Environment, batch: int, shares: Array) -> Environments:
        return cls(environment, tuple(environment.starts(shares)), np.zeros(batch, np.int32))

    def collect(self, act: Act, numbers: Mapping[str, Array]) -> dict[str, Array]:
        """Act for an iteration."""
        environment, kind = self.environment, self.components[0].dtype
        each_step = (len(numbers[STARTS]), len(self.elapsed))
        found = {
            OBSERVATIONS: np.empty((*each_step, environment.observations), kind),
            ACTIONS: np.empty(each_step, np.int32),
            REWARDS: np.empty(each_step, kind),
            ENDED: np.empty(each_step, np.int32),
        }
        for step in range(len(numbers[STARTS])):
            began_s = perf_counter()
            seen = found[OBSERVATIONS][step] = observed(environment, self.components, np)
            acting_s = perf_counter()
            action, kept = act(seen, numbers[NOISE][step])
            found[ACTIONS][step] = action
            for name, array in kept.items():
                if not step:
                    found[name] = np.empty((*each_step, *array.shape[1:]), kind)
                found[name][step] = array
            acted_s = perf_counter()
            first = tuple(environment.starts(numbers[STARTS][step].astype(kind)))
            self.components, self.elapsed, found[REWARDS][step], found[ENDED][step] = advanced(
                environment, first, self.components, self.elapsed, action.astype(kind), np
            )
            self.inferring_s += acted_s - acting_s
            self.stepping_s += perf_counter() - acted_s + acting_s - began_s
        return {**found, LAST: observed(environment, self.components, np)}


def mean_return(algorithm: Algorithm, environment: Environment, weights: Mapping[str, Array]) -> float:
    """Let the best actions act in float64, for one episode from each of the same starts for all agents."""
    held = {name: array.astype(np.float64) for name, array in weights.items()}
    shares = np.random.default_rng(_SEED_OF_EVALUATION).random((EVALUATED, len(environment.low)))
    components: Components = tuple(environment.starts(shares))
    goes_on, returns = np.ones(EVALUATED, np.bool_), np.zeros(EVALUATED)
    for _ in range(environment.most_steps):
        action = algorithm.preferences(held, observed(environment, components, np), np).argmax(-1)
        components, reward, over = environment.advance(components, action.astype(np.float64), np)
        returns += np.where(goes_on, reward, 0.0)
        goes_on &= ~np.asarray(over)
        if not goes_on.any():
            break
    return float(returns.mean())

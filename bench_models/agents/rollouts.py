"""What all agents do outside of their library: numbers drawn alike for all, steps in NumPy, and what a policy is worth.

While an agent learns, an episode that ended starts over in the same step, from a newly drawn state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.agents.ppo import (
    ACTIONS,
    ENDED,
    LOG_SHARES,
    MINIBATCHES,
    OBSERVATIONS,
    PASSES,
    REWARDS,
    ROWS,
    STEPS,
    VALUES,
    log_shares_of,
)
from fairlap.bench_models.environments.environment import Components, Environment

STARTS, UNIFORM = "starts", "uniform"
"""What is drawn for an iteration besides ``rows``: shares of where episodes start, and the number for each action."""

EVALUATED = 64
_SEED_OF_EVALUATION = 2026

Array = npt.NDArray[Any]
Policy = Callable[[Array], tuple[Array, Array]]
"""From observations to log shares and values."""


def drawn(environment: Environment, batch: int, seed: tuple[int, ...], iteration: int) -> dict[str, Array]:
    rng = np.random.default_rng([*seed, iteration])
    steps = STEPS * batch
    return {
        STARTS: rng.random((STEPS, batch, len(environment.low)), np.float32),
        UNIFORM: rng.random((STEPS, batch), np.float32),
        ROWS: np.stack([rng.permutation(steps) for _ in range(PASSES)])
        .reshape(-1, steps // MINIBATCHES)
        .astype(np.int32),
    }


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

    def collect(self, policy: Policy, numbers: Mapping[str, Array]) -> dict[str, Array]:
        """Act for an iteration."""
        environment, kind = self.environment, self.components[0].dtype
        batch = len(self.elapsed)
        found = {
            OBSERVATIONS: np.empty((STEPS, batch, environment.observations), kind),
            ACTIONS: np.empty((STEPS, batch), np.int32),
            LOG_SHARES: np.empty((STEPS, batch), kind),
            VALUES: np.empty((STEPS + 1, batch), kind),
            REWARDS: np.empty((STEPS, batch), kind),
            ENDED: np.empty((STEPS, batch), np.int32),
        }
        each = np.arange(batch)
        for step in range(STEPS):
            began_s = perf_counter()
            seen = found[OBSERVATIONS][step] = observed(environment, self.components, np)
            acting_s = perf_counter()
            log_shares, found[VALUES][step] = policy(seen)
            action = chosen(np.exp(log_shares), numbers[UNIFORM][step], np)
            found[ACTIONS][step], found[LOG_SHARES][step] = action, log_shares[each, action]
            acted_s = perf_counter()
            first = tuple(environment.starts(numbers[STARTS][step].astype(kind)))
            self.components, self.elapsed, found[REWARDS][step], found[ENDED][step] = advanced(
                environment, first, self.components, self.elapsed, action.astype(kind), np
            )
            self.inferring_s += acted_s - acting_s
            self.stepping_s += perf_counter() - acted_s + acting_s - began_s
        found[VALUES][STEPS] = policy(observed(environment, self.components, np))[1]
        return found


def chosen(shares: Any, uniform: Any, arrays: Any) -> Any:
    """Take the first action up to which the shares come to more than the number that was drawn."""
    return (uniform[..., None] >= arrays.cumsum(shares, -1)[..., :-1]).sum(-1)


def mean_return(environment: Environment, weights: Mapping[str, Array]) -> float:
    """Let the most probable actions act in float64, for one episode from each of the same starts for all agents."""
    held = {name: array.astype(np.float64) for name, array in weights.items()}
    shares = np.random.default_rng(_SEED_OF_EVALUATION).random((EVALUATED, len(environment.low)))
    components: Components = tuple(environment.starts(shares))
    goes_on, returns = np.ones(EVALUATED, np.bool_), np.zeros(EVALUATED)
    for _ in range(environment.most_steps):
        action = log_shares_of(held, observed(environment, components, np), np).argmax(-1)
        components, reward, over = environment.advance(components, action.astype(np.float64), np)
        returns += np.where(goes_on, reward, 0.0)
        goes_on &= ~np.asarray(over)
        if not goes_on.any():
            break
    return float(returns.mean())

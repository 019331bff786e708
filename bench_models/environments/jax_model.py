"""Environments in JAX: a scan over the steps of all of a batch at once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from fairlap.bench_models.environments.environment import ACTIONS, START, OfEnvironment, Rollouts, step
from fairlap.models.arrays import Arrays


class Implementation(OfEnvironment):
    agents = "jax_model"

    def params(self, weights: Arrays) -> dict[str, Any]:
        return dict(weights)

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any, ...]:
        environment = self.environment
        first = tuple(environment.starts(inputs[START].astype(self.state_type)))

        def seen(at: Rollouts) -> Any:
            return jnp.stack(environment.observe(at.components, jnp), -1).astype(jnp.float32)

        def one(carried: Any, action: Any) -> tuple[Any, None]:
            at, observed, returns, episodes = carried
            at, rewards = step(environment, first, at, action.astype(self.state_type), jnp)
            return (at, observed + seen(at), returns + rewards, episodes + at.ended), None

        batch = first[0].shape
        begun = Rollouts(first, jnp.zeros(batch, jnp.int32), jnp.zeros(batch, jnp.bool_))
        return scanned(one, seen, begun, inputs[ACTIONS], self.state_type)


def scanned(one: Any, seen: Any, begun: Any, actions: Any, state_type: str) -> tuple[Any, ...]:
    """Scan ``one`` over the actions: it carries the state and the sums. Give the last observation too.

    A scan that carried the observation as well took a tenth longer.
    """
    observed = jnp.zeros_like(seen(begun))
    batch = actions.shape[1]
    sums = (observed, jnp.zeros(batch, state_type), jnp.zeros(batch, jnp.int32))
    (last, *found), _ = jax.lax.scan(one, (begun, *sums), actions)
    return seen(last), *found

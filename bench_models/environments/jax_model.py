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

        def one(carried: Any, action: Any) -> tuple[Any, None]:
            at, _, observed, returns, episodes = carried
            found, rewards = step(environment, first, Rollouts(*at), action, jnp)
            observation = jnp.stack(environment.observe(found.components, jnp), -1).astype(jnp.float32)
            after = (found.components, found.elapsed, found.ended)
            return (after, observation, observed + observation, returns + rewards, episodes + found.ended), None

        batch = first[0].shape
        begun = (first, jnp.zeros(batch, jnp.int32), jnp.zeros(batch, jnp.bool_))
        return scanned(one, begun, environment.observations, inputs[ACTIONS].T.astype(self.state_type))


def scanned(one: Any, begun: Any, observations: int, actions: Any) -> tuple[Any, ...]:
    """Scan ``one`` over the actions: it carries the state, which is ``begun``, the last observation and the sums."""
    batch = actions.shape[1]
    nothing = jnp.zeros((batch, observations), jnp.float32)
    sums = (nothing, nothing, jnp.zeros(batch, actions.dtype), jnp.zeros(batch, jnp.int32))
    (_, *found), _ = jax.lax.scan(one, (begun, *sums), actions)
    return tuple(found)

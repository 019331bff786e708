"""Environments of gymnax: its physics, rewards, ends and observations, as ``vmap`` over the environments of a batch."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
from fairlap.bench_models.environments.environment import ACTIONS, START
from fairlap.bench_models.environments.jax_model import Implementation as InJax
from fairlap.bench_models.environments.jax_model import scanned


class Implementation(InJax):
    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any, ...]:
        simulated, own = gymnax.make(self.environment.gymnax)
        key = jax.random.key(0)  # of noise, which these environments have none of
        first = self._states(simulated.reset_env(key, own)[1], inputs[START].astype(self.state_type))
        first_seen = jax.vmap(simulated.get_obs)(first).astype(jnp.float32)

        def seen_of(at: tuple[Any, Any]) -> Any:
            return jax.vmap(simulated.get_obs)(at[0]).astype(jnp.float32)

        advance = jax.vmap(lambda state, action: simulated.step_env(key, state, action, own)[:4])
        is_over = jax.vmap(lambda state: simulated.is_truncated(state, own))

        def one(carried: Any, action: Any) -> tuple[Any, None]:
            (state, ended), observed, returns, episodes = carried
            seen, moved, reward, over = advance(state, action.astype(self.state_type))
            over = over | is_over(moved)
            state = jax.tree.map(lambda start, now: jnp.where(ended, start, now.astype(start.dtype)), first, moved)
            observation = jnp.where(ended[:, None], first_seen, seen.astype(jnp.float32))
            returns = returns + jnp.where(ended, 0.0, reward)
            ended = ~ended & over
            return ((state, ended), observed + observation, returns, episodes + ended), None

        begun = (first, jnp.zeros(first.time.shape, jnp.bool_))
        return scanned(one, seen_of, begun, inputs[ACTIONS], self.state_type)

    def _states(self, one: Any, shares: Any) -> Any:
        """Give the states of a batch: those that are given, and for the rest what one has that gymnax started."""
        batch = len(shares)
        names = [each.name for each in fields(one) if each.name != "time"]
        given = dict(zip(names, self.environment.starts(shares), strict=False))
        rest = {name: jnp.zeros(batch, shares.dtype) for name in names if name not in given}
        return one.replace(**given, **rest, time=jnp.zeros(batch, jnp.int32))

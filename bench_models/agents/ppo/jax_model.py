"""PPO in JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from fairlap.bench_models.agents.algorithm import ACTIONS, ENDED, LAST, OBSERVATIONS, REWARDS, ROWS
from fairlap.bench_models.agents.in_jax import InJax, Learnt, Named, descended
from fairlap.bench_models.agents.ppo.algorithm import (
    ALGORITHM,
    DISCOUNT,
    LOG_SHARES,
    TRACE,
    VALUES,
    chosen,
    log_shares_of,
    loss_of,
    values_of,
)


class Implementation(InJax):
    algorithm = ALGORITHM

    def act(self, weights: Named, seen: Any, noise: Any) -> tuple[Any, Named]:
        log_shares = log_shares_of(weights, seen, jnp)
        action = chosen(jnp.exp(log_shares), noise, jnp)
        taken = jnp.take_along_axis(log_shares, action[:, None], -1)[:, 0]
        return action, {LOG_SHARES: taken, VALUES: values_of(weights, seen, jnp)}

    def learn(self, learnt: Learnt, memory: Any, found: Named) -> tuple[Learnt, Any]:
        last = values_of(learnt[0], found[LAST], jnp)
        return self.update(learnt, {**found, VALUES: jnp.concatenate([found[VALUES], last[None]])})[0], memory

    def update(self, learnt: Learnt, inputs: Named) -> tuple[Learnt, Any, Any, Named]:
        advantages = _advantages(inputs)
        steps = {
            "observations": inputs[OBSERVATIONS].reshape(-1, self.environment.observations),
            "chosen": jax.nn.one_hot(inputs[ACTIONS].reshape(-1), self.environment.actions),
            "log_shares": inputs[LOG_SHARES].reshape(-1),
            "advantages": advantages.reshape(-1),
            "returns": (advantages + inputs[VALUES][:-1]).reshape(-1),
        }

        def loss(weights: Named, rows: Any) -> Any:
            return loss_of(weights, {name: array[rows] for name, array in steps.items()}, jnp)

        rows = inputs[ROWS].reshape(len(inputs[ROWS]), -1) % len(steps["returns"])
        return descended(ALGORITHM.adam, loss, learnt, rows)


def _advantages(inputs: Named) -> Any:
    values, goes_on = inputs[VALUES], 1.0 - inputs[ENDED]
    surprises = inputs[REWARDS] + DISCOUNT * values[1:] * goes_on - values[:-1]

    def one(after: Any, given: tuple[Any, Any]) -> tuple[Any, Any]:
        found = given[0] + DISCOUNT * TRACE * given[1] * after
        return found, found

    return jax.lax.scan(one, jnp.zeros_like(values[0]), (surprises, goes_on), reverse=True)[1]

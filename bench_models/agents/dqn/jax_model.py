"""Deep Q-learning in JAX: the memory is arrays with a place for each iteration, written where they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from fairlap.bench_models.agents.algorithm import ACTIONS, ENDED, LAST, OBSERVATIONS, REWARDS, ROWS
from fairlap.bench_models.agents.dqn.algorithm import (
    ALGORITHM,
    KEPT,
    NEXT,
    STEPS,
    action_values,
    actions_of,
    loss_of,
    targets_of,
)
from fairlap.bench_models.agents.in_jax import InJax, Learnt, Named, descended

_REMEMBERED = (OBSERVATIONS, ACTIONS, REWARDS, ENDED, NEXT)


class Implementation(InJax):
    algorithm = ALGORITHM

    def memory(self, batch: int) -> tuple[Named, Any]:
        """Give what is remembered, and how many iterations there were."""
        each = (KEPT, STEPS, batch)
        seen = jnp.zeros((*each, self.environment.observations))
        kept = (seen, jnp.zeros(each, jnp.int32), jnp.zeros(each), jnp.zeros(each, jnp.bool_), seen)
        return dict(zip(_REMEMBERED, kept, strict=True)), jnp.int32(0)

    def act(self, weights: Named, seen: Any, noise: Any) -> tuple[Any, Named]:
        return actions_of(action_values(weights, seen, jnp), noise, jnp), {}

    def learn(self, learnt: Learnt, memory: tuple[Named, Any], found: Named) -> tuple[Learnt, Any]:
        held, iterations = memory
        found = {**found, NEXT: jnp.concatenate([found[OBSERVATIONS][1:], found[LAST][None]])}
        held = {
            name: jax.lax.dynamic_update_index_in_dim(array, found[name], iterations % KEPT, 0)
            for name, array in held.items()
        }
        flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in held.items()}
        return self.update(learnt, {**flat, ROWS: found[ROWS]})[0], (held, iterations + 1)

    def update(self, learnt: Learnt, inputs: Named) -> tuple[Learnt, Any, Any, Named]:
        steps = {name: inputs[name].reshape(-1, *inputs[name].shape[2:]) for name in _REMEMBERED}
        fixed = learnt[0]

        def loss(weights: Named, rows: Any) -> Any:
            part = {name: array[rows] for name, array in steps.items()}
            part["chosen"] = jax.nn.one_hot(part[ACTIONS], self.environment.actions)
            return loss_of(weights, part, targets_of(fixed, part, jnp), jnp)

        return descended(ALGORITHM.adam, loss, learnt, inputs[ROWS] % len(steps[REWARDS]))

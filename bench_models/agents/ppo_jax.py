"""PPO in JAX: an iteration is two compiled calls, one that acts and one that learns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.bench_models.agents.optimizer import moved
from fairlap.bench_models.agents.ppo import (
    ACTIONS,
    DISCOUNT,
    ENDED,
    LOG_SHARES,
    OBSERVATIONS,
    REWARDS,
    ROWS,
    TRACE,
    VALUES,
    log_shares_of,
    loss_of,
    values_of,
)
from fairlap.bench_models.agents.rollouts import STARTS, UNIFORM, advanced, chosen, observed
from fairlap.bench_models.environments.environment import Environment
from fairlap.models.arrays import Arrays

Named = dict[str, Any]


class Implementation:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    def params(self, weights: Arrays) -> Named:
        return dict(weights)

    def canonical(self, params: Named) -> Named:
        return params

    def forward(self, params: Named, inputs: Named) -> tuple[Any, ...]:
        nothing = jax.tree.map(jnp.zeros_like, params)
        (after, *_), losses, norms, first = updated(self.environment, (params, nothing, nothing, 0), inputs)
        return (losses, norms, *(first[name] for name in params), *(after[name] for name in params))

    def trainer(self, weights: Arrays, batch: int) -> Trainer:
        return Trainer(self.environment, weights, batch)


class Trainer:
    """Has the state of a run; what is compiled is shared by all iterations."""

    def __init__(self, environment: Environment, weights: Arrays, batch: int) -> None:
        self._environment, self._weights, self._batch = environment, jax.device_put(dict(weights)), batch
        self._act = jax.jit(partial(acted, environment))
        self._learn = jax.jit(lambda learnt, found: updated(environment, learnt, found)[0])
        self._step_alone = jax.jit(partial(stepped, environment))
        self._state: Any = None
        self.acting_s = self.learning_s = 0.0

    def begin(self, numbers: Arrays) -> None:
        nothing = jax.tree.map(jnp.zeros_like, self._weights)
        components = tuple(self._environment.starts(jnp.asarray(numbers[STARTS][0])))
        self._state = ((self._weights, nothing, nothing, 0), (components, jnp.zeros(self._batch, jnp.int32)))

    def iterate(self, numbers: Arrays) -> None:
        learnt, at = self._state
        began_s = perf_counter()
        at, found = jax.block_until_ready(self._act(learnt[0], at, numbers))
        acted_s = perf_counter()
        learnt = jax.block_until_ready(self._learn(learnt, {**found, ROWS: numbers[ROWS]}))
        self.acting_s += acted_s - began_s
        self.learning_s += perf_counter() - acted_s
        self._state = (learnt, at)

    def hold(self) -> Callable[[], None]:
        """Give what goes back to the present state."""
        kept = self._state

        def back() -> None:
            self._state = kept

        return back

    def forget_times(self) -> None:
        self.acting_s = self.learning_s = 0.0

    def parts_s(self, numbers: Arrays, iterations: int) -> tuple[float, float, float]:
        """Split what it took into environment, inference and learning.

        The first two are one compiled scan, so the same steps are timed alone, and inference is the rest.
        """
        actions = np.zeros(numbers[UNIFORM].shape, np.float32)
        jax.block_until_ready(self._step_alone(self._state[1], numbers[STARTS], actions))
        began_s = perf_counter()
        for _ in range(iterations):
            jax.block_until_ready(self._step_alone(self._state[1], numbers[STARTS], actions))
        stepping_s = min(perf_counter() - began_s, self.acting_s)
        return stepping_s, self.acting_s - stepping_s, self.learning_s

    def weights(self) -> dict[str, np.ndarray]:
        return {name: np.array(each, np.float32) for name, each in self._state[0][0].items()}


def acted(environment: Environment, weights: Named, at: Any, numbers: Named) -> tuple[Any, Named]:
    def one(at: Any, given: tuple[Any, Any]) -> tuple[Any, tuple[Any, ...]]:
        shares, uniform = given
        seen = observed(environment, at[0], jnp)
        log_shares = log_shares_of(weights, seen, jnp)
        action = chosen(jnp.exp(log_shares), uniform, jnp)
        taken = jnp.take_along_axis(log_shares, action[:, None], -1)[:, 0]
        components, elapsed, reward, ended = advanced(
            environment, tuple(environment.starts(shares)), at[0], at[1], action.astype(seen.dtype), jnp
        )
        value = values_of(weights, seen, jnp)
        rewards = jnp.broadcast_to(jnp.asarray(reward, seen.dtype), action.shape)
        return (components, elapsed), (seen, action, taken, value, rewards, ended)

    at, found = jax.lax.scan(one, at, (numbers[STARTS], numbers[UNIFORM]))
    last = values_of(weights, observed(environment, at[0], jnp), jnp)
    named = dict(zip((OBSERVATIONS, ACTIONS, LOG_SHARES, VALUES, REWARDS, ENDED), found, strict=True))
    return at, {**named, VALUES: jnp.concatenate([named[VALUES], last[None]])}


def stepped(environment: Environment, at: Any, starts: Any, actions: Any) -> Any:
    """Take the steps of an iteration with given actions; its sums keep all of them from being left out."""

    def one(carried: Any, given: tuple[Any, Any]) -> tuple[Any, None]:
        at, seen = carried
        first = tuple(environment.starts(given[0]))
        components, elapsed, reward, ended = advanced(environment, first, at[0], at[1], given[1], jnp)
        seen = seen + observed(environment, components, jnp) + (reward * (1 - ended))[:, None]
        return ((components, elapsed), seen), None

    return jax.lax.scan(one, (at, observed(environment, at[0], jnp)), (starts, actions))[0]


def updated(environment: Environment, learnt: Any, inputs: Named) -> tuple[Any, Any, Any, Named]:
    """Give weights and moments after all parts, the losses and norms, and the first gradient."""
    advantages = _advantages(inputs)
    flat = {
        "observations": inputs[OBSERVATIONS].reshape(-1, environment.observations),
        "chosen": jax.nn.one_hot(inputs[ACTIONS].reshape(-1), environment.actions),
        "log_shares": inputs[LOG_SHARES].reshape(-1),
        "advantages": advantages.reshape(-1),
        "returns": (advantages + inputs[VALUES][:-1]).reshape(-1),
    }

    def one(learnt: Any, rows: Any) -> tuple[Any, Any]:
        weights, first, second, steps = learnt
        part = {name: array[rows] for name, array in flat.items()}
        loss, gradient = jax.value_and_grad(loss_of)(weights, part, jnp)
        weights, first, second, norm = moved(weights, first, second, steps + 1, gradient, jnp)
        return (weights, first, second, steps + 1), (loss, norm, gradient)

    rows = inputs[ROWS].reshape(len(inputs[ROWS]), -1) % len(flat["returns"])
    learnt, (loss, norm, gradient) = one(learnt, rows[0])
    learnt, (losses, norms) = jax.lax.scan(lambda *given: _without_gradient(one(*given)), learnt, rows[1:])
    return learnt, jnp.concatenate([loss[None], losses]), jnp.concatenate([norm[None], norms]), gradient


def _without_gradient(found: Any) -> Any:
    learnt, (loss, norm, _) = found
    return learnt, (loss, norm)


def _advantages(inputs: Named) -> Any:
    values, goes_on = inputs[VALUES], 1.0 - inputs[ENDED]
    surprises = inputs[REWARDS] + DISCOUNT * values[1:] * goes_on - values[:-1]

    def one(after: Any, given: tuple[Any, Any]) -> tuple[Any, Any]:
        found = given[0] + DISCOUNT * TRACE * given[1] * after
        return found, found

    return jax.lax.scan(one, jnp.zeros_like(values[0]), (surprises, goes_on), reverse=True)[1]

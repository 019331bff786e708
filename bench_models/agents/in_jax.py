"""Agents in JAX: an iteration is two compiled calls, one that acts and one that learns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.bench_models.agents.algorithm import (
    ACTIONS,
    ENDED,
    LAST,
    NOISE,
    OBSERVATIONS,
    REWARDS,
    ROWS,
    STARTS,
    Adam,
    Agent,
)
from fairlap.bench_models.agents.reference import moved
from fairlap.bench_models.agents.rollouts import advanced, observed
from fairlap.bench_models.environments.environment import Environment
from fairlap.models.arrays import Arrays

Named = dict[str, Any]
Learnt = tuple[Named, Named, Named, Any]
"""The weights, both moments of the optimizer, and its steps."""


class InJax(Agent, ABC):
    """The state of an agent is ``Learnt``, and what an algorithm remembers besides."""

    @abstractmethod
    def act(self, weights: Named, seen: Any, noise: Any) -> tuple[Any, Named]:
        """Give the actions of a step, and what else is kept of it."""

    @abstractmethod
    def learn(self, learnt: Learnt, memory: Any, found: Named) -> tuple[Learnt, Any]:
        """Learn from an iteration, with what was drawn for it."""

    @abstractmethod
    def update(self, learnt: Learnt, inputs: Named) -> tuple[Learnt, Any, Any, Named]:
        """Learn from the inputs of a call; give the losses and norms, and the first gradient."""

    def memory(self, batch: int) -> Any:
        return ()

    def params(self, weights: Arrays) -> Named:
        return dict(weights)

    def canonical(self, params: Named) -> Named:
        return params

    def forward(self, params: Named, inputs: Named) -> tuple[Any, ...]:
        (after, *_), losses, norms, first = self.update(begun(params), inputs)
        return (losses, norms, *(first[name] for name in params), *(after[name] for name in params))

    def trainer(self, weights: Arrays, batch: int) -> Trainer:
        return Trainer(self, weights, batch)


class Trainer:
    """Has the state of a run; what is compiled is shared by all iterations."""

    def __init__(self, agent: InJax, weights: Arrays, batch: int) -> None:
        self._agent, self._environment, self._batch = agent, agent.environment, batch
        self._weights = jax.device_put(dict(weights))
        self._act = jax.jit(self._acted)
        self._learn = jax.jit(agent.learn, donate_argnums=(0, 1))  # so that a memory is written where it is
        self._step_alone = jax.jit(self._stepped)
        self._learnt: Any = None
        self._at: Any = None
        self.acting_s = self.learning_s = 0.0

    def begin(self, numbers: Arrays) -> None:
        self._learnt = _copied((begun(self._weights), self._agent.memory(self._batch)))
        components = tuple(self._environment.starts(jnp.asarray(numbers[STARTS][0])))
        self._at = (components, jnp.zeros(self._batch, jnp.int32))

    def iterate(self, numbers: Arrays) -> None:
        began_s = perf_counter()
        self._at, found = jax.block_until_ready(self._act(self._learnt[0][0], self._at, numbers))
        acted_s = perf_counter()
        self._learnt = jax.block_until_ready(self._learn(*self._learnt, {**found, ROWS: numbers[ROWS]}))
        self.acting_s += acted_s - began_s
        self.learning_s += perf_counter() - acted_s

    def hold(self) -> Callable[[], None]:
        """Give what goes back to the present state."""
        kept = (_copied(self._learnt), self._at)

        def back() -> None:
            self._learnt, self._at = kept

        return back

    def forget_times(self) -> None:
        self.acting_s = self.learning_s = 0.0

    def parts_s(self, numbers: Arrays, iterations: int) -> tuple[float, float, float]:
        """Split what it took into environment, inference and learning.

        The first two are one compiled scan, so the same steps are timed alone, and inference is the rest.
        """
        actions = np.zeros(numbers[STARTS].shape[:2], np.float32)
        jax.block_until_ready(self._step_alone(self._at, numbers[STARTS], actions))
        began_s = perf_counter()
        for _ in range(iterations):
            jax.block_until_ready(self._step_alone(self._at, numbers[STARTS], actions))
        stepping_s = min(perf_counter() - began_s, self.acting_s)
        return stepping_s, self.acting_s - stepping_s, self.learning_s

    def weights(self) -> dict[str, np.ndarray]:
        return {name: np.array(each, np.float32) for name, each in self._learnt[0][0].items()}

    def _acted(self, weights: Named, at: Any, numbers: Named) -> tuple[Any, Named]:
        environment: Environment = self._environment

        def one(at: Any, given: tuple[Any, Any]) -> tuple[Any, Named]:
            shares, noise = given
            seen = observed(environment, at[0], jnp)
            action, kept = self._agent.act(weights, seen, noise)
            components, elapsed, reward, ended = advanced(
                environment, tuple(environment.starts(shares)), at[0], at[1], action.astype(seen.dtype), jnp
            )
            rewards = jnp.broadcast_to(jnp.asarray(reward, seen.dtype), action.shape)
            found = {OBSERVATIONS: seen, ACTIONS: action, REWARDS: rewards, ENDED: ended, **kept}
            return (components, elapsed), found

        at, found = jax.lax.scan(one, at, (numbers[STARTS], numbers[NOISE]))
        return at, {**found, LAST: observed(environment, at[0], jnp)}

    def _stepped(self, at: Any, starts: Any, actions: Any) -> Any:
        """Take the steps of an iteration with given actions; its sums keep all of them from being left out."""
        environment: Environment = self._environment

        def one(carried: Any, given: tuple[Any, Any]) -> tuple[Any, None]:
            at, seen = carried
            first = tuple(environment.starts(given[0]))
            components, elapsed, reward, ended = advanced(environment, first, at[0], at[1], given[1], jnp)
            seen = seen + observed(environment, components, jnp) + (reward * (1 - ended))[:, None]
            return ((components, elapsed), seen), None

        return jax.lax.scan(one, (at, observed(environment, at[0], jnp)), (starts, actions))[0]


def begun(weights: Named) -> Learnt:
    nothing = jax.tree.map(jnp.zeros_like, weights)
    return weights, nothing, nothing, jnp.int32(0)


def _copied(state: Any) -> Any:
    return jax.tree.map(jnp.copy, state)


def descended(
    adam: Adam, loss: Callable[[Named, Any], Any], learnt: Learnt, rows: Any
) -> tuple[Learnt, Any, Any, Named]:
    """Learn from one part after the other: ``loss`` takes weights and the rows of a part."""

    def one(learnt: Learnt, part: Any) -> tuple[Learnt, tuple[Any, Any, Named]]:
        weights, first, second, steps = learnt
        value, gradient = jax.value_and_grad(loss)(weights, part)
        weights, first, second, norm = moved(adam, weights, first, second, steps + 1, gradient, jnp)
        return (weights, first, second, steps + 1), (value, norm, gradient)

    def without_gradient(learnt: Learnt, part: Any) -> tuple[Learnt, tuple[Any, Any]]:
        learnt, (value, norm, _) = one(learnt, part)
        return learnt, (value, norm)

    learnt, (value, norm, gradient) = one(learnt, rows[0])
    learnt, (losses, norms) = jax.lax.scan(without_gradient, learnt, rows[1:])
    return learnt, jnp.concatenate([value[None], losses]), jnp.concatenate([norm[None], norms]), gradient

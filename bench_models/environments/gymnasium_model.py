"""Environments of gymnasium, through ``make_vec`` with all wrappers that it adds, and the loop that its users write.

Its environments draw where an episode starts from ``np_random``, which is replaced by the start that was given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from fairlap.bench_models.environments.environment import ACTIONS, START, OfEnvironment
from fairlap.models.arrays import Arrays

BATCHED = "vector_entry_point"

_DRAWING = np.random.default_rng(0)


class Given:
    """In place of a random generator: of one environment, the start of each of its episodes.

    It draws too, as that is 3 % of the time of ``CartPole-v1``.
    """

    def __init__(self, start: Any) -> None:
        self._start = start

    def uniform(self, low: Any, high: Any, size: Any = None) -> Any:
        """Give the whole state, or the one number that an environment draws."""
        _DRAWING.uniform(low, high, size)
        if size is None and np.ndim(low) == 0:
            return float(self._start[0])
        return self._start.copy()


class GivenToAll:
    """The same of environments that are one object, which draws for those of them that start over.

    To choose these takes as long as a draw.
    """

    def __init__(self, environments: Any, starts: Any) -> None:
        self._environments, self._starts = environments, starts

    def uniform(self, low: Any, high: Any, size: Any) -> Any:
        if size[1] == self._environments.num_envs:
            return self._starts.copy()
        return self._starts[:, self._environments.prev_done]


class Implementation(OfEnvironment):
    def why_not(self, mode: str) -> str:
        """Say why gymnasium does not make environments in this mode; empty where it does."""
        name = self.environment.gymnasium
        if not name:
            return f"gymnasium has no environment that is {self.environment.name}"
        if mode == BATCHED and gymnasium.spec(name).vector_entry_point is None:
            return f"gymnasium has no environment of a whole batch that is {name}; race gymnasium or gymnasium:async"
        return ""

    def made(self, mode: str, batch: int) -> Any:
        return gymnasium.make_vec(self.environment.gymnasium, num_envs=batch, vectorization_mode=mode)

    def bind(self, environments: Any, inputs: Arrays) -> Callable[[], tuple[Any, ...]]:
        starts = np.stack(self.environment.starts(inputs[START].astype(np.float64)), -1)
        discrete = bool(self.environment.actions)
        actions: Any = inputs[ACTIONS].astype(np.int64 if discrete else np.float64)
        actions = actions if discrete else actions[..., None]
        return partial(self.rollouts, environments, starts, actions)

    def rollouts(self, environments: Any, starts: Any, actions: Any) -> tuple[Any, ...]:
        if hasattr(environments, "set_attr"):
            environments.set_attr("np_random", [Given(start) for start in starts])
        else:
            environments.np_random = GivenToAll(environments, np.ascontiguousarray(starts.T))
        observation, _ = environments.reset()
        observed = np.zeros_like(observation)
        returns, episodes = np.zeros(len(starts)), np.zeros(len(starts), np.int32)
        for action in actions:
            observation, rewards, terminated, truncated, _ = environments.step(action)
            observed += observation
            returns += rewards
            episodes += terminated | truncated
        return observation, observed, returns, episodes

"""Environments in NumPy: all of a batch at once, a step after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from fairlap.bench_models.environments.environment import ACTIONS, START, OfEnvironment, Rollouts, step
from fairlap.models.arrays import Arrays


class Implementation(OfEnvironment):
    def bind(self, inputs: Arrays) -> Callable[[], tuple[Any, ...]]:
        kind = np.dtype(self.state_type)
        return partial(self.rollouts, inputs[START].astype(kind), inputs[ACTIONS].astype(kind))

    def rollouts(self, shares: Any, actions: Any) -> tuple[Any, ...]:
        environment, batch = self.environment, len(shares)
        first = tuple(environment.starts(shares))
        at = Rollouts(first, np.zeros(batch, np.int32), np.zeros(batch, np.bool_))
        observed = np.zeros((batch, environment.observations), np.float32)
        returns, episodes = np.zeros(batch, shares.dtype), np.zeros(batch, np.int32)
        observation = observed
        for action in actions:
            at, rewards = step(environment, first, at, action, np)
            observation = np.stack(environment.observe(at.components, np), -1).astype(np.float32)
            observed += observation
            returns += rewards
            episodes += at.ended
        return observation, observed, returns, episodes

"""The reference of an environment: float64 NumPy throughout, the sums of observations too.

Tests compare it with trajectories that gymnasium took, and with what the physics conserve.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.environments.environment import (
    ACTIONS,
    EPISODES,
    OBSERVATION,
    OBSERVED,
    RETURNS,
    START,
    OfEnvironment,
    Rollouts,
    step,
)
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]


class Implementation(OfEnvironment):
    agents = "reference"

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        observations, rewards, ended = self.trajectories(inputs)
        return {
            OBSERVATION: observations[-1],
            OBSERVED: observations.sum(0),
            RETURNS: rewards.sum(0),
            EPISODES: ended.sum(0).astype(np.float64),
        }

    def trajectories(self, inputs: Arrays) -> tuple[Array, Array, Array]:
        """Give the observation and reward after each step of each environment, and whether an episode ended there."""
        environment = self.environment
        first = tuple(environment.starts(inputs[START].astype(np.float64)))
        at = Rollouts(first, np.zeros(len(first[0]), np.int64), np.zeros(len(first[0]), np.bool_))
        seen, rewards, ended = [], [], []
        for action in inputs[ACTIONS].astype(np.float64):
            at, reward = step(environment, first, at, action, np)
            seen.append(np.stack(environment.observe(at.components, np), -1))
            rewards.append(reward)
            ended.append(at.ended)
        return np.array(seen), np.array(rewards), np.array(ended)

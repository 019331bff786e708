"""The reference of PPO in float64 NumPy: its gradients follow the chain rule through the loss as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.agents.optimizer import moved
from fairlap.bench_models.agents.ppo import (
    ACTIONS,
    AFTER,
    ENDED,
    GRADIENT,
    LOG_SHARES,
    LOSSES,
    NORMS,
    OBSERVATIONS,
    REWARDS,
    ROWS,
    VALUES,
    advantages_of,
    log_shares_of,
    loss_of,
    values_of,
)
from fairlap.bench_models.agents.rollouts import STARTS, UNIFORM, Environments
from fairlap.bench_models.environments.environment import Environment
from fairlap.models.arrays import Arrays
from fairlap.models.checks.differentiation import gradients

Array = npt.NDArray[Any]


class Implementation:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        losses, norms, first, after = updated(weights, inputs, self.environment.actions)
        return {
            LOSSES: np.array(losses),
            NORMS: np.array(norms),
            **{GRADIENT + name: each for name, each in first.items()},
            **{AFTER + name: each for name, each in after.items()},
        }

    def iteration(self, weights: Arrays, batch: int, numbers: Arrays) -> tuple[dict[str, Array], float]:
        """Give the weights after a first iteration, and how near a number came to deciding for another action."""
        held = {name: array.astype(np.float64) for name, array in weights.items()}
        environments = Environments.begun(self.environment, batch, numbers[STARTS][0].astype(np.float64))
        margins: list[float] = []

        def policy(seen: Array) -> tuple[Array, Array]:
            log_shares = log_shares_of(held, seen, np)
            ends = np.cumsum(np.exp(log_shares), -1)[:, :-1]
            if len(margins) < len(numbers[UNIFORM]):
                margins.append(float(np.abs(ends - numbers[UNIFORM][len(margins)][:, None]).min()))
            return log_shares, values_of(held, seen, np)

        found = environments.collect(policy, numbers)
        return updated(held, {**found, ROWS: numbers[ROWS]}, self.environment.actions)[3], min(margins)


def updated(weights: Arrays, inputs: Arrays, actions: int) -> tuple[list[float], list[float], Any, dict[str, Array]]:
    """Give losses and norms, the first gradient and the weights after all parts."""
    steps = parts_of(inputs, actions)
    now = {name: np.asarray(array, np.float64) for name, array in weights.items()}
    one = two = {name: np.zeros_like(array) for name, array in now.items()}
    losses, norms, first = [], [], None
    for number, rows in enumerate(inputs[ROWS].reshape(len(inputs[ROWS]), -1) % len(steps["returns"])):
        part = {name: array[rows] for name, array in steps.items()}
        loss, gradient = gradients(partial(_loss, part), now)
        first = first or gradient
        now, one, two, norm = moved(now, one, two, number + 1, gradient, np)
        losses.append(loss)
        norms.append(float(norm))
    return losses, norms, first, now


def _loss(part: Mapping[str, Array], weights: Mapping[str, Any]) -> Any:
    return loss_of(weights, part, np)


def parts_of(inputs: Arrays, actions: int) -> dict[str, Array]:
    """Give what the loss takes of every step of every environment, in one row."""
    advantages = advantages_of(inputs[VALUES], inputs[REWARDS], inputs[ENDED])
    kind = advantages.dtype
    return {
        "observations": inputs[OBSERVATIONS].reshape(-1, inputs[OBSERVATIONS].shape[-1]),
        "chosen": np.eye(actions, dtype=kind)[inputs[ACTIONS].reshape(-1)],
        "log_shares": inputs[LOG_SHARES].reshape(-1),
        "advantages": advantages.reshape(-1),
        "returns": (advantages + inputs[VALUES][:-1]).reshape(-1),
    }

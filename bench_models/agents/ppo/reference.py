"""The reference of PPO in float64 NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.agents.algorithm import ACTIONS, ENDED, LAST, OBSERVATIONS, REWARDS, ROWS, Array
from fairlap.bench_models.agents.ppo.algorithm import (
    ALGORITHM,
    LOG_SHARES,
    VALUES,
    advantages_of,
    chosen,
    log_shares_of,
    loss_of,
    values_of,
)
from fairlap.bench_models.agents.reference import InReference, Learnt, descended
from fairlap.models.arrays import Arrays


class Implementation(InReference):
    algorithm = ALGORITHM

    def act(self, weights: Arrays, seen: Array, noise: Array) -> tuple[Array, dict[str, Array], float]:
        log_shares = log_shares_of(weights, seen, np)
        shares = np.exp(log_shares)
        action = chosen(shares, noise, np)
        kept = {LOG_SHARES: log_shares[np.arange(len(action)), action], VALUES: values_of(weights, seen, np)}
        return action, kept, float(np.abs(np.cumsum(shares, -1)[:, :-1] - noise[:, None]).min())

    def learn(self, weights: Arrays, found: Arrays) -> Learnt:
        last = values_of(weights, found[LAST], np)
        return self.update(weights, {**found, VALUES: np.concatenate([found[VALUES], last[None]])})

    def update(self, weights: Arrays, inputs: Arrays) -> Learnt:
        steps = parts_of(inputs, self.environment.actions)

        def loss(rows: Array, held: Any) -> Any:
            return loss_of(held, {name: array[rows] for name, array in steps.items()}, np)

        rows = inputs[ROWS].reshape(len(inputs[ROWS]), -1) % len(steps["returns"])
        return descended(ALGORITHM.adam, loss, weights, rows)


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

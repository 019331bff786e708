"""PPO in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from fairlap.bench_models.agents.algorithm import ACTIONS, ENDED, LAST, OBSERVATIONS, REWARDS, ROWS, Array
from fairlap.bench_models.agents.in_torch import InTorch, Learner, Learnt
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
from torch import nn


class PolicyLearner(Learner):
    def act(self, seen: Array, noise: Array) -> tuple[Array, dict[str, Array]]:
        with torch.inference_mode():
            given = torch.from_numpy(seen)
            log_shares = log_shares_of(self.weights, given, torch).numpy()
            values = values_of(self.weights, given, torch).numpy()
        action = chosen(np.exp(log_shares), noise, np)
        return action, {LOG_SHARES: log_shares[np.arange(len(action)), action], VALUES: values}

    def learn(self, found: Mapping[str, Any]) -> None:
        with torch.no_grad():
            last = values_of(self.weights, found[LAST], torch)
        self.update({**found, VALUES: torch.cat([found[VALUES], last[None]])})

    def update(self, inputs: Mapping[str, Any]) -> Learnt:
        values = inputs[VALUES].numpy()
        advantages = torch.from_numpy(advantages_of(values, inputs[REWARDS].numpy(), inputs[ENDED].numpy()))
        steps = {
            "observations": inputs[OBSERVATIONS].flatten(0, 1),
            "chosen": nn.functional.one_hot(inputs[ACTIONS].flatten().long(), self.environment.actions).float(),
            "log_shares": inputs[LOG_SHARES].flatten(),
            "advantages": advantages.flatten(),
            "returns": (advantages + inputs[VALUES][:-1]).flatten(),
        }

        def loss(rows: Any) -> Any:
            return loss_of(self.weights, {name: each[rows] for name, each in steps.items()}, torch)

        return self.descend(loss, inputs[ROWS].flatten(1).long() % len(steps["returns"]))


class Implementation(InTorch):
    algorithm = ALGORITHM
    learner = PolicyLearner

"""Environments in PyTorch: all of a batch at once, a step after the other."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.environments.environment import Environment, OfEnvironment, Rollouts, step
from fairlap.models.arrays import Arrays
from torch import nn


class Simulated(nn.Module):
    def __init__(self, environment: Environment, kind: torch.dtype) -> None:
        super().__init__()
        self._environment, self._kind = environment, kind

    def forward(self, start: Any, actions: Any) -> tuple[Any, ...]:
        environment, batch = self._environment, len(start)
        first = tuple(environment.starts(start.to(self._kind)))
        at = Rollouts(first, torch.zeros(batch, dtype=torch.int32), torch.zeros(batch, dtype=torch.bool))
        observed = torch.zeros(batch, environment.observations)
        returns, episodes = torch.zeros(batch, dtype=self._kind), torch.zeros(batch, dtype=torch.int32)
        observation = observed
        for action in actions.to(self._kind).unbind():
            at, rewards = step(environment, first, at, action, torch)
            observation = torch.stack(environment.observe(at.components, torch), -1).float()
            observed += observation
            returns += rewards
            episodes += at.ended
        return observation, observed, returns, episodes


class Implementation(OfEnvironment):
    agents = "torch_model"

    def build(self, weights: Arrays) -> nn.Module:
        return Simulated(self.environment, getattr(torch, self.state_type)).eval()

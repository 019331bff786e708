"""Deep Q-learning in PyTorch: the memory is tensors with a place for each iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from fairlap.bench_models.agents.algorithm import ACTIONS, ENDED, LAST, OBSERVATIONS, REWARDS, ROWS, Array
from fairlap.bench_models.agents.dqn.algorithm import (
    ALGORITHM,
    KEPT,
    NEXT,
    action_values,
    actions_of,
    loss_of,
    targets_of,
)
from fairlap.bench_models.agents.in_torch import InTorch, Learner, Learnt
from torch import nn

_REMEMBERED = (OBSERVATIONS, ACTIONS, REWARDS, ENDED, NEXT)


class ValueLearner(Learner):
    def __init__(self, agent: InTorch, weights: Mapping[str, Any]) -> None:
        super().__init__(agent, weights)
        self._memory: dict[str, Any] = {}
        self._iterations = 0

    def act(self, seen: Array, noise: Array) -> tuple[Array, dict[str, Array]]:
        with torch.inference_mode():
            values = action_values(self.weights, torch.from_numpy(seen), torch).numpy()
        return actions_of(values, noise, np), {}

    def learn(self, found: Mapping[str, Any]) -> None:
        found = {**found, NEXT: torch.cat([found[OBSERVATIONS][1:], found[LAST][None]])}
        for name in _REMEMBERED:
            if not self._iterations:
                self._memory[name] = found[name].new_zeros((KEPT, *found[name].shape))
            self._memory[name][self._iterations % KEPT] = found[name]
        self._iterations += 1
        self.update({name: each.flatten(0, 1) for name, each in self._memory.items()} | {ROWS: found[ROWS]})

    def update(self, inputs: Mapping[str, Any]) -> Learnt:
        steps = {name: inputs[name].flatten(0, 1) for name in _REMEMBERED}
        fixed = {name: each.detach().clone() for name, each in self.weights.items()}

        def loss(rows: Any) -> Any:
            part = {name: each[rows] for name, each in steps.items()}
            part["chosen"] = nn.functional.one_hot(part[ACTIONS].long(), self.environment.actions)
            with torch.no_grad():
                targets = targets_of(fixed, part, torch)
            return loss_of(self.weights, part, targets, torch)

        return self.descend(loss, inputs[ROWS].long() % len(steps[REWARDS]))


class Implementation(InTorch):
    algorithm = ALGORITHM
    learner = ValueLearner

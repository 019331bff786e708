"""Agents in PyTorch: environments step in NumPy, as its users have them, and the policy acts and learns in PyTorch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import torch
from fairlap.bench_models.agents.algorithm import ROWS, STARTS, Agent, Array
from fairlap.bench_models.agents.rollouts import Environments
from fairlap.models.arrays import Arrays
from torch import nn

Learnt = tuple[list[Any], list[Any], list[Any]]
"""The losses and norms of all parts, and the first gradient."""


class Learner(ABC):
    """The weights that learn, with the optimizer, and what an algorithm remembers besides."""

    def __init__(self, agent: InTorch, weights: Mapping[str, Any]) -> None:
        self.environment, self.adam = agent.environment, agent.algorithm.adam
        self.weights = {name: each.clone().requires_grad_() for name, each in weights.items()}
        self._held = list(self.weights.values())
        adam = self.adam
        self._optimizer = torch.optim.Adam(self._held, adam.rate, adam.decays, adam.epsilon, fused=True)

    @abstractmethod
    def act(self, seen: Array, noise: Array) -> tuple[Array, dict[str, Array]]:
        """Give the actions of a step, and what else is kept of it."""

    @abstractmethod
    def learn(self, found: Mapping[str, Any]) -> None:
        """Learn from an iteration, with what was drawn for it."""

    @abstractmethod
    def update(self, inputs: Mapping[str, Any]) -> Learnt:
        """Learn from the inputs of a call."""

    def descend(self, loss_of: Callable[[Any], Any], parts: Any) -> Learnt:
        """Learn from one part after the other: ``loss_of`` takes the rows of one."""
        losses: list[Any] = []
        norms: list[Any] = []
        first: list[Any] = []
        for rows in parts:
            loss = loss_of(rows)
            self._optimizer.zero_grad()
            loss.backward()
            first = first or [each.grad.clone() for each in self._held]
            norms.append(nn.utils.clip_grad_norm_(self._held, self.adam.largest_norm))
            self._optimizer.step()
            losses.append(loss.detach())
        return losses, norms, first


class InTorch(Agent):
    learner: ClassVar[type[Learner]]

    def build(self, weights: Arrays) -> nn.Module:
        return Update(self, weights)

    def trainer(self, weights: Arrays, batch: int) -> Trainer:
        return Trainer(self, weights, batch)


class Update(nn.Module):
    """One update from the given weights, each time."""

    def __init__(self, agent: InTorch, weights: Arrays) -> None:
        super().__init__()
        for name, array in weights.items():
            self.register_buffer(name, torch.tensor(array))
        self._agent, self._names = agent, tuple(weights)

    def forward(self, **inputs: Any) -> tuple[Any, ...]:
        learner = self._agent.learner(self._agent, {name: getattr(self, name) for name in self._names})
        losses, norms, first = learner.update(inputs)
        after = [each.detach() for each in learner.weights.values()]
        return (torch.stack(losses), torch.stack(norms), *first, *after)


class Trainer:
    """Has the state of a run."""

    def __init__(self, agent: InTorch, weights: Arrays, batch: int) -> None:
        self._agent, self._batch = agent, batch
        self._weights = {name: torch.tensor(array) for name, array in weights.items()}
        self._learner: Any = None
        self._environments: Any = None
        self.learning_s = 0.0

    def begin(self, numbers: Arrays) -> None:
        self._learner = self._agent.learner(self._agent, self._weights)
        self._environments = Environments.begun(self._agent.environment, self._batch, numbers[STARTS][0])

    def iterate(self, numbers: Arrays) -> None:
        found = self._environments.collect(self._learner.act, numbers)
        began_s = perf_counter()
        self._learner.learn({name: torch.from_numpy(each) for name, each in {**found, ROWS: numbers[ROWS]}.items()})
        self.learning_s += perf_counter() - began_s

    def hold(self) -> Callable[[], None]:
        """Give what goes back to the present state; until then copies of it act and learn."""
        kept = (self._learner, self._environments)
        self._learner, self._environments = deepcopy(self._learner), replace(self._environments)

        def back() -> None:
            self._learner, self._environments = kept

        return back

    def forget_times(self) -> None:
        self._environments.stepping_s = self._environments.inferring_s = self.learning_s = 0.0

    def parts_s(self, numbers: Arrays, iterations: int) -> tuple[float, float, float]:
        """Split what it took into environment, inference and learning."""
        return self._environments.stepping_s, self._environments.inferring_s, self.learning_s

    def weights(self) -> dict[str, np.ndarray]:
        return {name: each.detach().numpy().copy() for name, each in self._learner.weights.items()}

"""PPO in PyTorch: environments step in NumPy, as its users have them, and the policy acts and learns in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np
import torch
from fairlap.bench_models.agents.ppo import (
    ACTIONS,
    DECAYS,
    ENDED,
    EPSILON,
    LARGEST_NORM,
    LOG_SHARES,
    OBSERVATIONS,
    RATE,
    REWARDS,
    ROWS,
    VALUES,
    advantages_of,
    log_shares_of,
    loss_of,
    values_of,
)
from fairlap.bench_models.agents.rollouts import STARTS, Environments
from fairlap.bench_models.environments.environment import Environment
from fairlap.models.arrays import Arrays
from torch import nn

_FIELDS = (OBSERVATIONS, ACTIONS, LOG_SHARES, VALUES, REWARDS, ENDED, ROWS)


class Implementation:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    def build(self, weights: Arrays) -> nn.Module:
        return Update(self.environment, weights)

    def trainer(self, weights: Arrays, batch: int) -> Trainer:
        return Trainer(self.environment, weights, batch)


class Learner:
    """The weights that learn, with the optimizer."""

    def __init__(self, environment: Environment, weights: Mapping[str, Any]) -> None:
        self._actions = environment.actions
        self.weights = {name: each.clone().requires_grad_() for name, each in weights.items()}
        self._held = list(self.weights.values())
        self.optimizer = torch.optim.Adam(self._held, RATE, DECAYS, EPSILON, fused=True)

    def update(self, inputs: Mapping[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Learn from all parts; give losses, norms and the first gradient."""
        values = inputs[VALUES].numpy()
        advantages = torch.from_numpy(advantages_of(values, inputs[REWARDS].numpy(), inputs[ENDED].numpy()))
        flat = {
            "observations": inputs[OBSERVATIONS].flatten(0, 1),
            "chosen": nn.functional.one_hot(inputs[ACTIONS].flatten().long(), self._actions).float(),
            "log_shares": inputs[LOG_SHARES].flatten(),
            "advantages": advantages.flatten(),
            "returns": (advantages + inputs[VALUES][:-1]).flatten(),
        }
        losses: list[Any] = []
        norms: list[Any] = []
        first: list[Any] = []
        for rows in inputs[ROWS].flatten(1).long() % len(flat["returns"]):
            part = {name: each[rows] for name, each in flat.items()}
            loss = loss_of(self.weights, part, torch)
            self.optimizer.zero_grad()
            loss.backward()
            first = first or [each.grad.clone() for each in self._held]
            norms.append(nn.utils.clip_grad_norm_(self._held, LARGEST_NORM))
            self.optimizer.step()
            losses.append(loss.detach())
        return losses, norms, first

    def policy(self, seen: Any) -> tuple[Any, Any]:
        with torch.inference_mode():
            given = torch.from_numpy(seen)
            return log_shares_of(self.weights, given, torch).numpy(), values_of(self.weights, given, torch).numpy()


class Update(nn.Module):
    """One update from the given weights, each time."""

    def __init__(self, environment: Environment, weights: Arrays) -> None:
        super().__init__()
        for name, array in weights.items():
            self.register_buffer(name, torch.tensor(array))
        self._environment, self._names = environment, tuple(weights)

    def forward(
        self, observations: Any, actions: Any, log_shares: Any, values: Any, rewards: Any, ended: Any, rows: Any
    ) -> tuple[Any, ...]:
        given = (observations, actions, log_shares, values, rewards, ended, rows)
        learner = Learner(self._environment, {name: getattr(self, name) for name in self._names})
        losses, norms, first = learner.update(dict(zip(_FIELDS, given, strict=True)))
        after = [each.detach() for each in learner.weights.values()]
        return (torch.stack(losses), torch.stack(norms), *first, *after)


class Trainer:
    """Has the state of a run."""

    def __init__(self, environment: Environment, weights: Arrays, batch: int) -> None:
        self._environment, self._batch = environment, batch
        self._weights = {name: torch.tensor(array) for name, array in weights.items()}
        self._learner = Learner(environment, self._weights)
        self._environments: Any = None
        self.learning_s = 0.0

    def begin(self, numbers: Arrays) -> None:
        self._learner = Learner(self._environment, self._weights)
        self._environments = Environments.begun(self._environment, self._batch, numbers[STARTS][0])

    def iterate(self, numbers: Arrays) -> None:
        found = self._environments.collect(self._learner.policy, numbers)
        began_s = perf_counter()
        tensors = {name: torch.from_numpy(each) for name, each in {**found, ROWS: numbers[ROWS]}.items()}
        self._learner.update(tensors)
        self.learning_s += perf_counter() - began_s

    def hold(self) -> Callable[[], None]:
        """Give what goes back to the present state."""
        environments, learner = self._environments, self._learner
        weights = [each.detach().clone() for each in learner.weights.values()]
        state = {
            each: {name: value.clone() for name, value in kept.items()}
            for each, kept in learner.optimizer.state.items()
        }
        at = (environments.components, environments.elapsed)

        def back() -> None:
            with torch.no_grad():
                for held, kept in zip(learner.weights.values(), weights, strict=True):
                    held.copy_(kept)
            learner.optimizer.state.clear()
            learner.optimizer.state.update(
                {each: {name: value.clone() for name, value in kept.items()} for each, kept in state.items()}
            )
            environments.components, environments.elapsed = at

        return back

    def forget_times(self) -> None:
        self._environments.stepping_s = self._environments.inferring_s = self.learning_s = 0.0

    def parts_s(self, numbers: Arrays, iterations: int) -> tuple[float, float, float]:
        """Split what it took into environment, inference and learning."""
        return self._environments.stepping_s, self._environments.inferring_s, self.learning_s

    def weights(self) -> dict[str, np.ndarray]:
        return {name: each.detach().numpy().copy() for name, each in self._learner.weights.items()}

"""Agents in float64 NumPy: their gradients follow the chain rule through the loss as it is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from fairlap.bench_models.agents.algorithm import AFTER, GRADIENT, LOSSES, NORMS, ROWS, STARTS, Adam, Agent, Array
from fairlap.bench_models.agents.rollouts import Environments
from fairlap.models.arrays import Arrays
from fairlap.models.checks.differentiation import gradients

Learnt = tuple[list[float], list[float], dict[str, Array], dict[str, Array]]
"""The losses and norms of all parts, the first gradient, and the weights after them."""

Named = dict[str, Any]


class InReference(Agent, ABC):
    @abstractmethod
    def act(self, weights: Arrays, seen: Array, noise: Array) -> tuple[Array, dict[str, Array], float]:
        """Give the actions, what else is kept, and how near to other actions they were."""

    @abstractmethod
    def learn(self, weights: Arrays, found: Arrays) -> Learnt:
        """Learn from a first iteration, with what was drawn for it."""

    @abstractmethod
    def update(self, weights: Arrays, inputs: Arrays) -> Learnt:
        """Learn from the inputs of a call."""

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        losses, norms, first, after = self.update(weights, inputs)
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

        def act(seen: Array, noise: Array) -> tuple[Array, dict[str, Array]]:
            action, kept, margin = self.act(held, seen, noise)
            margins.append(margin)
            return action, kept

        found = environments.collect(act, numbers)
        return self.learn(held, {**found, ROWS: numbers[ROWS]})[3], min(margins)


def descended(adam: Adam, loss: Callable[[Array, Mapping[str, Any]], Any], weights: Arrays, rows: Array) -> Learnt:
    """Learn from one part after the other: ``loss`` takes the rows of one, and weights."""
    now = {name: np.asarray(array, np.float64) for name, array in weights.items()}
    one = two = {name: np.zeros_like(array) for name, array in now.items()}
    losses, norms, first = [], [], None
    for number, part in enumerate(rows):
        value, gradient = gradients(partial(loss, part), now)
        first = first or gradient
        now, one, two, norm = moved(adam, now, one, two, number + 1, gradient, np)
        losses.append(value)
        norms.append(float(norm))
    return losses, norms, first or {}, now


def moved(
    adam: Adam, weights: Named, first: Named, second: Named, steps: Any, gradient: Named, arrays: Any
) -> tuple[Named, Named, Named, Any]:
    """Give the weights, both moments and the norm of the gradient after a step; ``steps`` counts this one too.

    JAX takes it too; PyTorch has its own.
    """
    norm = arrays.sqrt(sum((each * each).sum() for each in gradient.values()))
    factor = arrays.minimum(1.0, adam.largest_norm / (norm + adam.norm_epsilon))
    slow, slower = adam.decays
    after: tuple[Named, Named, Named] = ({}, {}, {})
    for name, slope in gradient.items():
        limited = slope * factor
        one = slow * first[name] + (1 - slow) * limited
        two = slower * second[name] + (1 - slower) * limited * limited
        root = arrays.sqrt(two / (1 - slower**steps)) + adam.epsilon
        after[0][name] = weights[name] - adam.rate * (one / (1 - slow**steps)) / root
        after[1][name], after[2][name] = one, two
    return (*after, norm)

"""The reference of deep Q-learning in float64 NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.agents.algorithm import ACTIONS, LAST, OBSERVATIONS, ROWS, Array
from fairlap.bench_models.agents.dqn.algorithm import (
    ALGORITHM,
    NEXT,
    action_values,
    actions_of,
    loss_of,
    targets_of,
)
from fairlap.bench_models.agents.reference import InReference, Learnt, descended
from fairlap.models.arrays import Arrays


class Implementation(InReference):
    algorithm = ALGORITHM

    def act(self, weights: Arrays, seen: Array, noise: Array) -> tuple[Array, dict[str, Array], float]:
        values = action_values(weights, seen, np)
        second, largest = np.sort(values, -1)[:, -2:].T
        nearest = np.where(noise < 0, largest - second, np.inf).min()
        return actions_of(values, noise, np), {}, float(nearest)

    def learn(self, weights: Arrays, found: Arrays) -> Learnt:
        after = np.concatenate([found[OBSERVATIONS][1:], found[LAST][None]])
        return self.update(weights, {**found, NEXT: after})

    def update(self, weights: Arrays, inputs: Arrays) -> Learnt:
        fixed = {name: np.asarray(array, np.float64) for name, array in weights.items()}
        remembered = {name: array for name, array in inputs.items() if name not in (ROWS, LAST)}
        steps = {name: array.reshape(-1, *array.shape[2:]) for name, array in remembered.items()}
        steps["chosen"] = np.eye(self.environment.actions)[steps[ACTIONS]]

        def loss(rows: Array, held: Any) -> Any:
            part = {name: array[rows] for name, array in steps.items()}
            return loss_of(held, part, targets_of(fixed, part, np), np)

        return descended(ALGORITHM.adam, loss, weights, inputs[ROWS] % len(steps["chosen"]))

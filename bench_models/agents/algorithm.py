"""What an algorithm is by which an agent learns: one folder here, with the name of its mode.

Its ``algorithm.py`` has ``ALGORITHM`` and what is the same in all libraries; ``reference.py``, ``jax_model.py`` and
``torch_model.py`` have an ``Implementation`` each, by the base classes next to this file. An iteration takes some steps
of every environment, and then learns from parts of what it has seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from fairlap.models.spec import Constant, Interface, Normal, Tensor, Weight

if TYPE_CHECKING:
    from fairlap.bench_models.environments.environment import Environment

OBSERVATIONS, ACTIONS, REWARDS, ENDED, LAST = "observations", "actions", "rewards", "ended", "last"
"""What is seen: a row for each step, and the observations after the last one."""

STARTS, NOISE, ROWS = "starts", "noise", "rows"
"""What is drawn for an iteration: of each step where episodes start, as shares of ranges, and what its actions are
drawn by; and which of the steps each part has."""

LOSSES, NORMS, GRADIENT, AFTER = "losses", "norms", "gradient/", "after/"
"""What an update gives: the loss and the norm of the gradient of each part, the first gradient, and the weights."""

HIDDEN = 64

Array = npt.NDArray[Any]
Weights = Mapping[str, Any]


@dataclass(frozen=True)
class Adam:
    """Its bias is corrected. The gradient of a part is scaled down to a norm of ``largest_norm``."""

    rate: float
    epsilon: float
    largest_norm: float
    decays: tuple[float, float] = (0.9, 0.999)
    norm_epsilon: float = 1e-6


@dataclass(frozen=True)
class Algorithm:
    steps: int  # of each environment in an iteration
    parts: int  # of an update, each with a step of the optimizer
    iterations_of_epoch: int  # between two looks at the score
    adam: Adam
    weights_of: Callable[[int, int], tuple[Weight, ...]]  # of the numbers of an observation, and of actions
    inputs_of: Callable[[int, int], tuple[Tensor, ...]]  # of an update
    noise: Callable[[np.random.Generator, int, int, int], Array]  # of an iteration, a batch and a number of actions
    rows: Callable[[np.random.Generator, int, int], Array]  # of an iteration and a batch
    preferences: Callable[[Weights, Any, Any], Any]  # of weights, observations, arrays: the largest is the best action

    def interface_of(self, observations: int, actions: int) -> Interface:
        """Of a call, which is one update from the weights that were given, and from an optimizer without a history."""
        weights = self.weights_of(observations, actions)
        of_parts = (Tensor(name, (self.parts,), Constant(0.0)) for name in (LOSSES, NORMS))
        of_weights = (
            Tensor(prefix + weight.name, weight.shape, Constant(0.0))
            for prefix in (GRADIENT, AFTER)
            for weight in weights
        )
        return Interface(self.inputs_of(observations, actions), (*of_parts, *of_weights), weights)

    def drawn(self, environment: Environment, batch: int, seed: tuple[int, ...], iteration: int) -> dict[str, Array]:
        """Draw what all contestants get alike."""
        rng = np.random.default_rng([*seed, iteration])
        return {
            STARTS: rng.random((self.steps, batch, len(environment.low)), np.float32),
            NOISE: self.noise(rng, iteration, batch, environment.actions),
            ROWS: self.rows(rng, iteration, batch),
        }


def algorithm_of(mode: str) -> Algorithm:
    found: Algorithm = import_module(f"fairlap.bench_models.agents.{mode}.algorithm").ALGORITHM
    return found


class Agent:
    """An algorithm in an environment: what the implementations in all libraries have."""

    algorithm: ClassVar[Algorithm]

    def __init__(self, environment: Environment) -> None:
        self.environment = environment


def network_weights(name: str, observations: int, outputs: int, last_gain: float) -> tuple[Weight, ...]:
    """Draw them normal, with a deviation of the gain over the root of the inputs; biases begin at 0."""
    sizes = (observations, HIDDEN, HIDDEN, outputs)
    found = []
    for layer, gain in enumerate((math.sqrt(2), math.sqrt(2), last_gain)):
        spread = Normal(gain / math.sqrt(sizes[layer]))
        found.append(Weight(f"{name}_{layer}", (sizes[layer + 1], sizes[layer]), spread))
        found.append(Weight(f"{name}_{layer}_bias", (sizes[layer + 1],), Constant(0.0)))
    return tuple(found)


def network(weights: Weights, name: str, observations: Any, arrays: Any) -> Any:
    """Two hidden layers of tanh in any library, for any number of axes before the last one of the observations."""
    hidden = observations
    for layer in (0, 1):
        hidden = arrays.tanh(hidden @ weights[f"{name}_{layer}"].T + weights[f"{name}_{layer}_bias"])
    return hidden @ weights[f"{name}_2"].T + weights[f"{name}_2_bias"]

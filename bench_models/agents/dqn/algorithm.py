"""Deep Q-learning (Mnih and others, 2015), with one set of settings for all libraries.

Each iteration takes ``STEPS`` steps of every environment, puts them into a memory of the last ``KEPT`` iterations, and
learns from ``PARTS`` parts of it, of ``PART`` steps each, drawn with replacement. A network gives the value of each
action. The target network is a copy of it from before the first part of the iteration. The loss is Huber's. An action
is drawn with a probability that falls in a line from 1 to ``LEAST`` over the first ``EXPLORED`` steps of environments
together; otherwise it is the one of the largest value. There are no other tricks: no double, duelling or prioritised
variant. An episode that is cut after its most steps counts as ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from fairlap.bench_models.agents.algorithm import (
    ACTIONS,
    ENDED,
    OBSERVATIONS,
    REWARDS,
    ROWS,
    Adam,
    Algorithm,
    Array,
    Weights,
    network,
    network_weights,
)
from fairlap.models.spec import BATCH, Integers, Normal, Tensor, Uniform, Weight

STEPS, PARTS, PART = 16, 64, 64
KEPT = 512
"""Iterations in the memory, of which the oldest makes room for the next one."""

DISCOUNT = 0.99
LEAST, EXPLORED = 0.04, 10_000

NEXT = "next_observations"
"""What is remembered of a step besides. Where an episode ended it does not matter."""

_IN_A_CALL = 8  # iterations in the memory of an update that is timed
_ANY_ROW = 2**20  # rows are drawn below it, and taken modulo their number


def weights_of(observations: int, actions: int) -> tuple[Weight, ...]:
    return network_weights("values", observations, actions, 1.0)


def inputs_of(observations: int, actions: int) -> tuple[Tensor, ...]:
    each = (_IN_A_CALL * STEPS, BATCH)
    return (
        Tensor(OBSERVATIONS, (*each, observations), Normal(0.5)),
        Tensor(ACTIONS, each, Integers(0, actions), "int32"),
        Tensor(REWARDS, each, Uniform(0.0, 1.0)),
        Tensor(ENDED, each, Integers(0, 2), "int32"),
        Tensor(NEXT, (*each, observations), Normal(0.5)),
        Tensor(ROWS, (PARTS, PART), Integers(0, _ANY_ROW), "int32"),
    )


def exploration(done: Any) -> Any:
    """Give the probability of a drawn action after so many steps of all environments."""
    return np.maximum(LEAST, 1 - (1 - LEAST) * done / EXPLORED)


def drawn_actions(rng: np.random.Generator, iteration: int, batch: int, actions: int) -> Array:
    """Draw the action of each step of each environment; -1 where it is the one of the largest value."""
    probability = exploration((iteration * STEPS + np.arange(STEPS)) * batch)
    is_drawn = rng.random((STEPS, batch)) < probability[:, None]
    return np.where(is_drawn, rng.integers(0, actions, (STEPS, batch)), -1).astype(np.int32)


def rows(rng: np.random.Generator, iteration: int, batch: int) -> Array:
    return rng.integers(0, min(iteration + 1, KEPT) * STEPS * batch, (PARTS, PART), np.int32)


def action_values(weights: Weights, observations: Any, arrays: Any) -> Any:
    return network(weights, "values", observations, arrays)


def actions_of(values: Any, drawn: Any, arrays: Any) -> Any:
    return arrays.where(drawn >= 0, drawn, values.argmax(-1))


def targets_of(fixed: Weights, part: Mapping[str, Any], arrays: Any) -> Any:
    """By the target network: the reward, and the largest value afterwards where the episode goes on."""
    after = arrays.amax(action_values(fixed, part[NEXT], arrays), -1)
    return part[REWARDS] + DISCOUNT * (1 - part[ENDED]) * after


def loss_of(weights: Weights, part: Mapping[str, Any], targets: Any, arrays: Any) -> Any:
    """Of a part: its observations, ``chosen`` (a 1 at the action taken), and targets."""
    off = (action_values(weights, part[OBSERVATIONS], arrays) * part["chosen"]).sum(-1) - targets
    near = arrays.clip(off, -1.0, 1.0)
    return (near * (off - 0.5 * near)).mean()


ALGORITHM = Algorithm(
    steps=STEPS,
    parts=PARTS,
    iterations_of_epoch=8,
    adam=Adam(rate=1e-3, epsilon=1e-8, largest_norm=10.0),
    weights_of=weights_of,
    inputs_of=inputs_of,
    noise=drawn_actions,
    rows=rows,
    preferences=action_values,
)

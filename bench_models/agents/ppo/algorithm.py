"""Proximal policy optimisation (Schulman and others, 2017), with one set of settings for all libraries.

Each iteration takes ``STEPS`` steps of every environment by the present policy, and then ``PASSES`` passes over them in
``MINIBATCHES`` parts. Two networks give the logits of the actions and the value. Adam takes a step at a constant rate.
Advantages are generalised (GAE) and, within a part, of mean 0 and deviation 1. Observations, rewards and values are
neither normalised nor clipped. An episode that is cut after its most steps counts as ended. An action is drawn by a
uniform number.
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

STEPS, PASSES, MINIBATCHES = 128, 4, 4
DISCOUNT, TRACE = 0.99, 0.95
CLIP, ENTROPY, VALUE = 0.2, 0.01, 0.5
"""How far the ratio of shares counts, and the weights of the entropy and of half the square error of the values."""

DEVIATION_EPSILON = 1e-8

LOG_SHARES, VALUES = "log_shares", "values"
"""What is kept of a step besides; of values an update has one more."""

_ANY_ROW = 2**20  # rows are drawn below it, and taken modulo their number


def weights_of(observations: int, actions: int) -> tuple[Weight, ...]:
    return network_weights("actor", observations, actions, 0.01) + network_weights("critic", observations, 1, 1.0)


def inputs_of(observations: int, actions: int) -> tuple[Tensor, ...]:
    each = (STEPS, BATCH)
    return (
        Tensor(OBSERVATIONS, (*each, observations), Normal(0.5)),
        Tensor(ACTIONS, each, Integers(0, actions), "int32"),
        Tensor(LOG_SHARES, each, Uniform(-1.0, -0.4)),
        Tensor(VALUES, (STEPS + 1, BATCH), Normal(1.0)),
        Tensor(REWARDS, each, Uniform(0.0, 1.0)),
        Tensor(ENDED, each, Integers(0, 2), "int32"),
        Tensor(ROWS, (PASSES * MINIBATCHES, STEPS // MINIBATCHES, BATCH), Integers(0, _ANY_ROW), "int32"),
    )


def uniform(rng: np.random.Generator, _iteration: int, batch: int, _actions: int) -> Array:
    return rng.random((STEPS, batch), np.float32)


def rows(rng: np.random.Generator, _iteration: int, batch: int) -> Array:
    steps = STEPS * batch
    drawn = np.stack([rng.permutation(steps) for _ in range(PASSES)])
    return drawn.reshape(-1, steps // MINIBATCHES).astype(np.int32)


def log_shares_of(weights: Weights, observations: Any, arrays: Any) -> Any:
    """Give the logarithm of the probability of each action. The last layer begins so small that nothing overflows."""
    logits = network(weights, "actor", observations, arrays)
    return logits - arrays.log(arrays.exp(logits).sum(-1))[..., None]


def values_of(weights: Weights, observations: Any, arrays: Any) -> Any:
    return network(weights, "critic", observations, arrays)[..., 0]


def chosen(shares: Any, number: Any, arrays: Any) -> Any:
    """Take the first action up to which the shares come to more than the number that was drawn."""
    return (number[..., None] >= arrays.cumsum(shares, -1)[..., :-1]).sum(-1)


def loss_of(weights: Weights, part: Mapping[str, Any], arrays: Any) -> Any:
    """Of a part: its observations, ``chosen`` (a 1 at the action taken), old log shares, advantages and returns."""
    log_shares = log_shares_of(weights, part["observations"], arrays)
    ratio = arrays.exp((log_shares * part["chosen"]).sum(-1) - part["log_shares"])
    advantages = part["advantages"]
    off = advantages - advantages.mean()
    scaled = off / (arrays.sqrt((off * off).mean()) + DEVIATION_EPSILON)
    gained = arrays.minimum(ratio * scaled, arrays.clip(ratio, 1 - CLIP, 1 + CLIP) * scaled).mean()
    entropy = -(arrays.exp(log_shares) * log_shares).sum(-1).mean()
    missed = values_of(weights, part["observations"], arrays) - part["returns"]
    return VALUE * 0.5 * (missed * missed).mean() - gained - ENTROPY * entropy


def advantages_of(values: Array, rewards: Array, ended: Array) -> Array:
    """In NumPy, from the last step back."""
    goes_on = 1 - ended.astype(values.dtype)
    found = np.empty_like(rewards, values.dtype)
    after = np.zeros_like(values[0])
    for step in range(len(rewards) - 1, -1, -1):
        surprise = rewards[step] + DISCOUNT * values[step + 1] * goes_on[step] - values[step]
        after = found[step] = surprise + DISCOUNT * TRACE * goes_on[step] * after
    return found


ALGORITHM = Algorithm(
    steps=STEPS,
    parts=PASSES * MINIBATCHES,
    iterations_of_epoch=4,
    adam=Adam(rate=1e-3, epsilon=1e-5, largest_norm=0.5),
    weights_of=weights_of,
    inputs_of=inputs_of,
    noise=uniform,
    rows=rows,
    preferences=log_shares_of,
)

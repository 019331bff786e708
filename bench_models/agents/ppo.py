"""Proximal policy optimisation (Schulman and others, 2017), with one set of settings for all libraries.

Each iteration takes ``STEPS`` steps of every environment by the present policy, and then ``PASSES`` passes over them in
``MINIBATCHES`` parts. Two networks of two hidden layers of tanh give the logits of the actions and the value. Weights
begin normal, with a standard deviation of the gain over the root of the inputs; biases begin at 0. The gradient of a
part is scaled down to a norm of ``LARGEST_NORM``, and Adam takes a step at a constant rate. Advantages are generalised
(GAE) and, within a part, of mean 0 and deviation 1. Observations, rewards and values are neither normalised nor
clipped. An episode that is cut after its most steps counts as ended. An action is drawn by a uniform number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.models.spec import BATCH, Constant, Integers, Interface, Normal, Tensor, Uniform, Weight

STEPS = 128
"""Of each environment in an iteration."""

PASSES, MINIBATCHES = 4, 4
HIDDEN = 64
DISCOUNT, TRACE = 0.99, 0.95
CLIP, ENTROPY, VALUE = 0.2, 0.01, 0.5
"""How far the ratio of shares counts, and the weights of the entropy and of half the square error of the values."""

LARGEST_NORM, NORM_EPSILON = 0.5, 1e-6
RATE, DECAYS, EPSILON = 1e-3, (0.9, 0.999), 1e-5
"""Of Adam, with corrected bias."""

DEVIATION_EPSILON = 1e-8

OBSERVATIONS, ACTIONS, LOG_SHARES, VALUES, REWARDS, ENDED, ROWS = (
    *("observations", "actions", "log_shares", "values"),
    *("rewards", "ended", "rows"),
)
"""What an update learns from: a row for each step, and of values one more; ``rows`` are which steps each part has."""

LOSSES, NORMS, GRADIENT, AFTER = "losses", "norms", "gradient/", "after/"
"""What it gives: the loss and the norm of the gradient of each part, the first gradient, and the weights afterwards."""

Array = npt.NDArray[Any]
Weights = Mapping[str, Any]

_GAINS = {"actor": 0.01, "critic": 1.0}  # of the last layer
_ANY_ROW = 2**20  # rows are drawn below it, and taken modulo their number


def weights_of(observations: int, actions: int) -> tuple[Weight, ...]:
    found = []
    for name, outputs in (("actor", actions), ("critic", 1)):
        sizes = (observations, HIDDEN, HIDDEN, outputs)
        for layer, gain in enumerate((math.sqrt(2), math.sqrt(2), _GAINS[name])):
            spread = Normal(gain / math.sqrt(sizes[layer]))
            found.append(Weight(f"{name}_{layer}", (sizes[layer + 1], sizes[layer]), spread))
            found.append(Weight(f"{name}_{layer}_bias", (sizes[layer + 1],), Constant(0.0)))
    return tuple(found)


def interface_of(observations: int, actions: int) -> Interface:
    """Of a call, which is one update from the weights that were given, and from an optimizer without a history."""
    each, weights = (STEPS, BATCH), weights_of(observations, actions)
    parts = PASSES * MINIBATCHES
    return Interface(
        inputs=(
            Tensor(OBSERVATIONS, (*each, observations), Normal(0.5)),
            Tensor(ACTIONS, each, Integers(0, actions), "int32"),
            Tensor(LOG_SHARES, each, Uniform(-1.0, -0.4)),
            Tensor(VALUES, (STEPS + 1, BATCH), Normal(1.0)),
            Tensor(REWARDS, each, Uniform(0.0, 1.0)),
            Tensor(ENDED, each, Integers(0, 2), "int32"),
            Tensor(ROWS, (parts, STEPS // MINIBATCHES, BATCH), Integers(0, _ANY_ROW), "int32"),
        ),
        outputs=(
            Tensor(LOSSES, (parts,), Constant(0.0)),
            Tensor(NORMS, (parts,), Constant(0.0)),
            *(Tensor(GRADIENT + weight.name, weight.shape, Constant(0.0)) for weight in weights),
            *(Tensor(AFTER + weight.name, weight.shape, Constant(0.0)) for weight in weights),
        ),
        weights=weights,
    )


def network(weights: Weights, name: str, observations: Any, arrays: Any) -> Any:
    """In any library, for any number of axes before the last one of the observations."""
    hidden = observations
    for layer in (0, 1):
        hidden = arrays.tanh(hidden @ weights[f"{name}_{layer}"].T + weights[f"{name}_{layer}_bias"])
    return hidden @ weights[f"{name}_2"].T + weights[f"{name}_2_bias"]


def log_shares_of(weights: Weights, observations: Any, arrays: Any) -> Any:
    """Give the logarithm of the probability of each action. The last layer begins so small that nothing overflows."""
    logits = network(weights, "actor", observations, arrays)
    return logits - arrays.log(arrays.exp(logits).sum(-1))[..., None]


def values_of(weights: Weights, observations: Any, arrays: Any) -> Any:
    return network(weights, "critic", observations, arrays)[..., 0]


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

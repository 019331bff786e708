"""Are gradients right? Against the slope of the float64 reference's loss along random directions.

A directional derivative costs two evaluations of the reference, whatever the number of weights, and a wrong entry
anywhere shows in it. One direction per probe runs over all weights, with each weight's part scaled to the weight,
so that small ones are not drowned by large ones.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fairlap.workloads.reference import loss_at
from fairlap.workloads.workload import Arrays, Workload

DIRECTIONS = 3
# In units of each weight's own size. Larger ones cross the kinks of ReLU: at 1e-7 the slope of a deep net's loss was off
# by a per cent, at 1e-9 by less than a hundred-thousandth, and float64 still carries the difference.
_STEP = 1e-9


def slopes(work: Workload, seed: int = 0, directions: int = DIRECTIONS) -> list[float]:
    """The reference's slope along each direction."""
    weights = {name: array.astype(np.float64) for name, array in work.weights.items()}
    inputs = {
        name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in work.inputs.items()
    }
    found = []
    for number in range(directions):
        along = direction(work, seed, number)
        ahead = loss_at(work, {name: weights[name] + _STEP * along.get(name, 0.0) for name in weights}, inputs)
        behind = loss_at(work, {name: weights[name] - _STEP * along.get(name, 0.0) for name in weights}, inputs)
        found.append((ahead - behind) / (2 * _STEP))
    return found


def direction(work: Workload, seed: int, number: int) -> dict[str, npt.NDArray[np.float64]]:
    rng = np.random.default_rng([seed, number])
    along = {}
    for weight in work.spec.weights:
        if weight.trained:
            array = work.weights[weight.name]
            size = float(np.sqrt(np.mean(np.square(array, dtype=np.float64)))) or 1.0
            along[weight.name] = rng.standard_normal(array.shape) * size
    return along


def gradient_disagreements(work: Workload, gradients: Arrays, expected: list[float], seed: int = 0) -> list[float]:
    """For each direction, how far the gradients' slope is from the reference's, relative to the largest slope possible.

    The scale is that of the slope a random direction meets, the norm of the scaled gradient, so that a direction
    which happens to run level does not make a tiny error look large. Infinite when ``unusable`` says why.
    """
    if unusable(work, gradients):
        return [float("inf")] * len(expected)
    given = {weight.name: gradients[weight.name].astype(np.float64) for weight in work.spec.weights if weight.trained}
    found = []
    for number, slope in enumerate(expected):
        along = direction(work, seed, number)
        told = sum(float(np.vdot(given[name], along[name])) for name in along)
        scale = math.sqrt(sum(float(np.sum(given[name] ** 2) * np.mean(along[name] ** 2)) for name in along))
        found.append(abs(told - slope) / max(scale, abs(slope), 1e-300))
    return found


def unusable(work: Workload, gradients: Arrays) -> str:
    """Why these gradients have no slope at all, or nothing."""
    for weight in work.spec.weights:
        if not weight.trained:
            continue
        if weight.name not in gradients:
            return f"the gradient of {weight.name} is missing"
        gradient = gradients[weight.name]
        if gradient.shape != weight.shape:
            return f"the gradient of {weight.name} has the shape {list(gradient.shape)}, not {list(weight.shape)}"
        if not np.isfinite(gradient).all():
            return f"the gradient of {weight.name} is not finite everywhere"
    return ""

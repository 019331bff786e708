"""Compare gradients with the slope of the float64 reference's loss along random directions.

A directional derivative costs two evaluations of the reference, whatever the number of weights, and a wrong entry
anywhere shows in it. A direction runs over all weights, each up or down by the weight's own size, so that small ones
are not drowned by large ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays, all_widened
from fairlap.models.reference import loss_at
from fairlap.models.spec import Weight
from fairlap.models.workload import Workload

DIRECTIONS = 3
# In units of each weight's own size. Larger ones cross the kinks of ReLU: at 1e-7 the slope of a deep net's loss was
# off by a per cent, at 1e-9 by less than a hundred-thousandth, and float64 still carries the difference.
_STEP = 1e-9
_ROUNDING = 2.0**-23  # of a weight, relative: twice what float32 rounds away from it
_NUDGES_TO_SHOW, _MOST_NUDGES = 2, 8
_SEED = 0
_WORTH_KEEPING = 1e-4  # of the largest slope


def slopes(work: Workload) -> list[float]:
    """Compute the reference's slope along each direction."""
    return _slopes_at(work, all_widened(work.weights))


def possible_slopes(work: Workload) -> list[list[float]]:
    """Compute the slopes along all directions: the reference's, then others that rounding may turn them into.

    In a net with kinks one of millions of units lies so close to one that float32 may put it on either side, and honest
    frameworks differ by all that hangs on it. So every weight is nudged by about what float32 rounds away from it; a
    smooth net's slopes hardly move, and two nudges show it.
    """
    exact = slopes(work)
    found = [exact]
    largest = max(map(abs, exact))
    for number in range(_MOST_NUDGES):
        if number == _NUDGES_TO_SHOW and len(found) == 1:
            break
        nudged = all_widened(work.weights)
        for weight in _trained(work):
            upwards = _upwards(weight, DIRECTIONS + number)
            nudged[weight.name] *= np.where(upwards, 1 + _ROUNDING, 1 - _ROUNDING)
        moved = _slopes_at(work, nudged)
        if max(abs(one - other) for one, other in zip(moved, exact, strict=True)) > _WORTH_KEEPING * largest:
            found.append(moved)
    return found


def _slopes_at(work: Workload, weights: dict[str, npt.NDArray[Any]]) -> list[float]:
    inputs = all_widened(work.inputs)
    found = []
    for number in range(DIRECTIONS):
        along = {
            weight.name: np.where(_upwards(weight, number), 1.0, -1.0) * _size(work, weight)
            for weight in _trained(work)
        }
        ahead = loss_at(work, {name: weights[name] + _STEP * along.get(name, 0.0) for name in weights}, inputs)
        behind = loss_at(work, {name: weights[name] - _STEP * along.get(name, 0.0) for name in weights}, inputs)
        found.append((ahead - behind) / (2 * _STEP))
    return found


def _trained(work: Workload) -> list[Weight]:
    return [weight for weight in work.spec.weights if weight.trained]


def _upwards(weight: Weight, number: int) -> npt.NDArray[np.bool_]:
    """Draw which elements grow along a direction; the others shrink.

    Signs are drawn in a tenth of the time of normals, and a model has a hundred million of them.
    """
    rng = np.random.default_rng([_SEED, number, *weight.name.encode()])
    count = math.prod(weight.shape)
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-count // 8)), np.uint8), count=count)
    return bits.view(np.bool_).reshape(weight.shape)


def _size(work: Workload, weight: Weight) -> float:
    return float(np.sqrt(np.mean(np.square(work.weights[weight.name], dtype=np.float64)))) or 1.0


def gradient_disagreements(work: Workload, gradients: Arrays, possible: list[list[float]]) -> list[float]:
    """For each direction, how far the gradients' slope is from the reference's, relative to the largest slope possible.

    Of the possible slopes of the reference those count that are nearest, all directions together.
    The scale is that of the slope a random direction meets, the norm of the scaled gradient, so that a direction
    which happens to run level does not make a tiny error look large. Infinite when ``unusable`` says why.
    """
    if unusable(work, gradients):
        return [math.inf] * len(possible[0])
    sizes = {weight.name: _size(work, weight) for weight in _trained(work)}
    squares = (sizes[name] ** 2 * float(np.square(gradients[name], dtype=np.float64).sum()) for name in sizes)
    scale = math.sqrt(sum(squares))
    measured = [
        sum(
            sizes[weight.name] * _sum_along(gradients[weight.name], _upwards(weight, number))
            for weight in _trained(work)
        )
        for number in range(len(possible[0]))
    ]
    each = [
        [abs(a - b) / max(scale, abs(b), 1e-300) for a, b in zip(measured, slopes, strict=True)] for slopes in possible
    ]
    return min(each, key=max)


def _sum_along(gradient: npt.NDArray[Any], upwards: npt.NDArray[np.bool_]) -> float:
    """Add up all elements, with the sign of the shrinking ones inverted."""
    return 2 * float(gradient.sum(where=upwards, dtype=np.float64)) - float(gradient.sum(dtype=np.float64))


def unusable(work: Workload, gradients: Arrays) -> str:
    """Why these gradients have no slope; empty if they have one."""
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

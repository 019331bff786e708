"""The losses of the reference, of which gradients are taken: of traced arrays they are traced too."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Labels
from fairlap.models.checks.differentiation import Traced, plain
from fairlap.models.spec import Loss

Array = npt.NDArray[Any]


def loss_of(kind: Loss, output: Any, labels: Labels | None) -> Any:
    if kind == "mean_square":
        return np.mean(output**2)
    if labels is None:
        raise ValueError(f"{kind} needs labels")
    if kind == "square_error":
        return np.mean((output - labels.astype(output.dtype)) ** 2)
    if kind == "ctc":
        return loss_of_frames(output, labels)
    shifted = output - output.max(axis=-1, keepdims=True)
    log_shares = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    chosen = np.take_along_axis(log_shares, labels[..., None].astype(np.int64), axis=-1)
    return -chosen.mean()


def loss_of_frames(logits: Any, labels: Array) -> Any:
    """Compute how likely frames spell their labels, over all ways to spread them, by the forward-backward recursion.

    This is connectionist temporal classification, of logits [items, frames, classes]. Class 0 is the blank, and 0 at
    the end of a label only fills it up. Graves et al., Connectionist Temporal Classification, 2006; each item's loss is
    divided by the length of its label, as PyTorch's mean is.
    """
    values = plain(logits)
    items = len(values)
    shifted = values - values.max(axis=-1, keepdims=True)
    log_shares = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    lengths = (labels != 0).sum(axis=1)
    spelt = np.zeros((items, 2 * labels.shape[1] + 1), np.int64)  # with a blank around each
    spelt[:, 1::2] = labels
    emitted = np.take_along_axis(log_shares, spelt[:, None, :], axis=2)
    skips = np.zeros(spelt.shape, bool)
    skips[:, 2:] = (spelt[:, 2:] != 0) & (spelt[:, 2:] != spelt[:, :-2])
    forward = _forward(emitted, skips)
    last = np.take_along_axis(forward[:, -1], np.stack([2 * lengths, np.maximum(2 * lengths - 1, 0)], 1), axis=1)
    last[lengths == 0, 1] = -np.inf
    log_likely = np.logaddexp(last[:, 0], last[:, 1])
    counted = (items * np.maximum(lengths, 1)).astype(values.dtype)
    loss = -(log_likely / counted).sum()
    if not isinstance(logits, Traced):
        return loss

    def backward(gradient: Array) -> Array:
        ways = np.exp(forward + _backward(emitted, skips, lengths) - log_likely[:, None, None])
        slopes = np.exp(log_shares)
        for item in range(items):
            np.subtract.at(slopes[item].T, spelt[item], ways[item].T)
        whole: Array = gradient * slopes / counted[:, None, None]
        return whole

    return Traced(loss, [(logits, backward)])


def _forward(emitted: Array, skips: Array) -> Array:
    """Of each frame and place, how likely what came until then is, in logarithms."""
    found = np.full_like(emitted, -np.inf)
    found[:, 0, :2] = emitted[:, 0, :2]
    for frame in range(1, emitted.shape[1]):
        before = found[:, frame - 1]
        ways = before.copy()
        ways[:, 1:] = np.logaddexp(ways[:, 1:], before[:, :-1])
        ways[:, 2:] = np.logaddexp(ways[:, 2:], np.where(skips[:, 2:], before[:, :-2], -np.inf))
        found[:, frame] = ways + emitted[:, frame]
    return found


def _backward(emitted: Array, skips: Array, lengths: Array) -> Array:
    """Of each frame and place, how likely what comes after it is."""
    found = np.full_like(emitted, -np.inf)
    every = np.arange(len(lengths))
    found[every, -1, 2 * lengths] = 0.0
    found[every, -1, np.maximum(2 * lengths - 1, 0)] = 0.0
    for frame in range(emitted.shape[1] - 2, -1, -1):
        after = found[:, frame + 1] + emitted[:, frame + 1]
        ways = after.copy()
        ways[:, :-1] = np.logaddexp(ways[:, :-1], after[:, 1:])
        ways[:, :-2] = np.logaddexp(ways[:, :-2], np.where(skips[:, 2:], after[:, 2:], -np.inf))
        found[:, frame] = ways
    return found

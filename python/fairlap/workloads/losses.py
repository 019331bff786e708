"""The losses that gradients are taken of, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.workloads.spec import Loss

Array = npt.NDArray[Any]


def loss_of(kind: Loss, output: Array, labels: npt.NDArray[np.int32] | None) -> float:
    """``cross_entropy``: the mean over rows, classes last; ``mean_square``: of all elements."""
    if kind == "mean_square":
        return float(np.mean(output**2))
    if labels is None:
        raise ValueError("cross-entropy needs labels")
    shifted = output - output.max(axis=-1, keepdims=True)
    log_shares = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    chosen = np.take_along_axis(log_shares, labels[..., None].astype(np.int64), axis=-1)
    return float(-chosen.mean())

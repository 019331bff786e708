"""Metrics of calibration: whether a model's shares are as often right as they say.

Scores become shares by softmax, unless every row of a batch is shares already.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairlap.models.metrics.classes import require_classes, shares_of
from fairlap.models.metrics.metric import IGNORED, Array, Parts, TaskMetric, per_item, ratio

_BINS = 15  # of equal width, as in Guo and others, "On Calibration of Modern Neural Networks", 2017


def _square_errors(outputs: Array, labels: Array) -> Parts:
    """Sum the squares over the classes of each row, as Brier did: from 0 to 2."""
    counted = labels != IGNORED
    right = np.arange(outputs.shape[-1]) == np.where(counted, labels, 0)[..., None]
    off = ((shares_of(outputs.astype(np.float64)) - right) ** 2).sum(axis=-1)
    return per_item(np.where(counted, off, 0.0)), per_item(counted)


def _confident(outputs: Array, labels: Array) -> Parts:
    """Give the largest share of each row, NaN where the row does not count, and whether it is the right class's."""
    rows = len(outputs)
    largest = np.where(labels == IGNORED, np.nan, shares_of(outputs.astype(np.float64)).max(axis=-1))
    return largest.reshape(rows, -1), (outputs.argmax(axis=-1) == labels).reshape(rows, -1)


def _calibration_error(largest: Array, right: Array) -> float:
    counted = ~np.isnan(largest)
    if not counted.any():
        return float("nan")
    shares, hits = largest[counted], right[counted]
    bins = np.minimum(np.ceil(shares * _BINS).astype(int) - 1, _BINS - 1)  # the upper end belongs to a bin
    off = np.bincount(bins, weights=hits - shares, minlength=_BINS)
    return float(np.abs(off).sum() / len(shares))


METRICS: Mapping[str, TaskMetric] = {
    "brier": TaskMetric("Brier score: mean square error of the shares, summed over classes, from 0 to 2",
                        require_classes, _square_errors, ratio, better="lower"),
    "ece": TaskMetric("expected calibration error over fifteen bins of the largest share", require_classes,
                      _confident, _calibration_error, better="lower"),
}  # fmt: skip

"""Metrics of values: the labels have the shape of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from fairlap.machine.variables import variables_kept
from fairlap.models.array_files.npy_map import pieces_of
from fairlap.models.metrics.metric import (
    SCIKIT_LEARN,
    Array,
    Output,
    Parts,
    TaskMetric,
    other_shape,
    per_item,
    ratio,
    refuse,
)

_MOST_CORRELATED = 20_000  # values whose correlation is resampled


def _require_values(text: str, labels: Array, outputs: Sequence[Output]) -> None:
    [output] = outputs
    if labels.shape[1:] != output.shape[1:] or labels.dtype.kind not in "biuf":
        raise other_shape(text, labels, output, output.shape[1:], "numbers")


def _require_spread(text: str, labels: Array, outputs: Sequence[Output]) -> None:
    _require_values(text, labels, outputs)
    if all((piece == labels[:1]).all() for piece in pieces_of(labels)):
        raise refuse(f"{text} takes labels that differ between items; these are all equal")


def _require_spread_of_columns(text: str, labels: Array, outputs: Sequence[Output]) -> None:
    _require_values(text, labels, outputs)
    alike = np.ones(labels[:1].size, dtype=bool)
    for piece in pieces_of(labels):
        alike &= (piece == labels[:1]).reshape(len(piece), -1).all(axis=0)
    if alike.any():
        column = f" in column {int(alike.argmax())}" if alike.size > 1 else ""
        raise refuse(f"{text} takes labels that differ between items; these are all equal{column}")


def _differences(outputs: Array, labels: Array, power: int) -> Parts:
    off = np.abs(outputs.astype(np.float64) - labels) ** power
    return per_item(off), per_item(np.ones_like(off))


def _both(outputs: Array, labels: Array) -> Parts:
    rows = len(outputs)
    return outputs.astype(np.float64).reshape(rows, -1), labels.astype(np.float64).reshape(rows, -1)


def _explained(outputs: Array, labels: Array) -> float:
    """Of the variance of all columns together. NaN where the labels do not differ."""
    with variables_kept():
        from sklearn.metrics import r2_score

    if (labels == labels[:1]).all():
        return float("nan")
    return float(r2_score(labels, outputs, multioutput="variance_weighted"))


def _correlation(outputs: Array, labels: Array, *, name: str) -> float:
    """By SciPy's name, the mean over columns. NaN where a column of either does not differ."""
    from scipy import stats  # type: ignore[import-untyped,unused-ignore]

    if any((each == each[:1]).all(axis=0).any() for each in (outputs, labels)):
        return float("nan")
    found = [getattr(stats, name)(a, b).statistic for a, b in zip(outputs.T, labels.T, strict=True)]
    return float(np.mean(found))


METRICS: Mapping[str, TaskMetric] = {
    "mse": TaskMetric("mean square of the difference", _require_values, partial(_differences, power=2), ratio,
                      better="lower"),
    "mae": TaskMetric("mean absolute difference", _require_values, partial(_differences, power=1), ratio,
                      better="lower"),
    "r2": TaskMetric("share of the variance that is explained", _require_spread, _both, _explained, SCIKIT_LEARN,
                     best_is_1=True),
    "pearson": TaskMetric("Pearson's correlation, the mean over columns", _require_spread_of_columns, _both,
                          partial(_correlation, name="pearsonr"), best_is_1=True, most_resampled=_MOST_CORRELATED),
    "spearman": TaskMetric("Spearman's correlation of ranks, the mean over columns", _require_spread_of_columns, _both,
                           partial(_correlation, name="spearmanr"), best_is_1=True, most_resampled=_MOST_CORRELATED),
}  # fmt: skip

"""Metrics of recommendations: an output scores all candidates of an item, and the first K of them count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from fairlap.machine.variables import variables_kept
from fairlap.models.metrics.classes import hits, require_classes
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


def _require_relevances(text: str, labels: Array, outputs: Sequence[Output], first: int) -> None:
    [output] = outputs
    shape = output.shape
    if len(shape) != 2 or labels.shape[1:] != shape[1:] or labels.dtype.kind not in "biuf":
        raise other_shape(text, labels, output, shape[1:], "relevances")
    if (labels < 0).any():
        raise refuse(f"{text} takes relevances that are 0 or more")
    if not 0 < first <= shape[1]:
        raise refuse(f"{text} counts 1 to {shape[1]} candidates, those of {output.name}")
    if not labels.any():
        raise refuse(f"{text} takes labels with at least one relevant candidate")


def _require_fewer(text: str, labels: Array, outputs: Sequence[Output], first: int) -> None:
    require_classes(text, labels, outputs)
    classes = outputs[0].shape[-1]
    if not 0 < first < classes:
        raise refuse(f"{text} counts 1 to {classes - 1} of the {classes} classes of {outputs[0].name}")


def _gains(outputs: Array, labels: Array, first: int) -> Parts:
    """Score each item by scikit-learn; one without a relevant candidate does not count."""
    with variables_kept():
        from sklearn.metrics import ndcg_score

    counted = np.count_nonzero(labels, axis=1) > 0
    found = np.zeros(len(labels))
    for place in np.flatnonzero(counted).tolist():
        found[place] = ndcg_score(labels[place : place + 1], outputs[place : place + 1], k=first)
    return found, per_item(counted)


def _gain(first: int) -> TaskMetric:
    meaning = f"normalised discounted cumulative gain of the first {first:,} candidates, the mean over items"
    return TaskMetric(meaning, partial(_require_relevances, first=first), partial(_gains, first=first), ratio,
                      SCIKIT_LEARN, best_is_1=True)  # fmt: skip


def _hit(first: int) -> TaskMetric:
    meaning = f"share of rows whose {first:,} largest scores have the right class"
    return TaskMetric(meaning, partial(_require_fewer, first=first), partial(hits, best=first), ratio, share=True,
                      best_is_1=True)  # fmt: skip


FAMILIES: Mapping[str, Callable[[int], TaskMetric]] = {"ndcg": _gain, "hit": _hit}

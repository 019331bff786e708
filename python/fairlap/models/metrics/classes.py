"""Metrics of classes.

The label is the number of the right class for each row of the output, whose last axis has the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from fairlap.machine.variables import variables_kept
from fairlap.models.array_files.npy_map import pieces_of
from fairlap.models.metrics.metric import (
    IGNORED,
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

_MOST_RANKED = 20_000  # scores whose ranking is resampled
_RESAMPLES_OF_RANKS = 199  # scikit-learn takes milliseconds for each class


def require_classes(text: str, labels: Array, outputs: Sequence[Output], least: int = 2) -> None:
    [output] = outputs
    shape = output.shape
    if len(shape) < 2 or labels.dtype.kind not in "iu" or labels.shape[1:] != shape[1:-1]:
        raise other_shape(text, labels, output, shape[1:-1], "whole numbers")
    classes = shape[-1]
    if classes < least:
        raise refuse(f"{text} needs at least {least} classes, and {output.name} has {classes}")
    found = [end for each in _counted(labels) for end in (each.min(), each.max())]
    if not found or min(found) < 0 or max(found) >= classes:
        got = f"{min(found)}..{max(found)}" if found else "none that count"
        raise refuse(f"labels must be within 0..{classes - 1}, the classes of {output.name} (got {got})")


def _counted(labels: Array) -> Iterator[Array]:
    """Those that count, in pieces that are not empty."""
    counted = (piece[piece != IGNORED] for piece in pieces_of(labels))
    return (each for each in counted if each.size)


def _require_several_classes(text: str, labels: Array, outputs: Sequence[Output]) -> None:
    require_classes(text, labels, outputs)
    found = set[int]().union(*(np.unique(each).tolist() for each in _counted(labels)))
    if len(found) < 2:
        raise refuse(f"{text} takes labels of at least two classes (got {min(found)} alone)")


def hits(outputs: Array, labels: Array, best: int) -> Parts:
    """Right rows and all rows of each item. A tie with the right class counts as before it."""
    counted = labels != IGNORED
    right = np.take_along_axis(outputs, np.where(counted, labels, 0)[..., None], axis=-1)
    hit = counted & (np.count_nonzero(outputs >= right, axis=-1) <= best)
    return per_item(hit), per_item(counted)


def _surprise(outputs: Array, labels: Array) -> Parts:
    """Negative logarithms of the right classes' shares, and how many there are."""
    from scipy.special import log_softmax  # type: ignore[import-untyped,unused-ignore]

    counted = labels != IGNORED
    logs = log_softmax(outputs.astype(np.float64), axis=-1)
    right = np.take_along_axis(logs, np.where(counted, labels, 0)[..., None], axis=-1)[..., 0]
    return per_item(np.where(counted, -right, 0.0)), per_item(counted)


def _perplexity(sums: Array, counts: Array) -> float:
    return float(np.exp(ratio(sums, counts)))


def _predicted(outputs: Array, labels: Array) -> Parts:
    rows = len(outputs)
    return outputs.argmax(axis=-1).reshape(rows, -1), labels.reshape(rows, -1)


def _over_classes(predicted: Array, labels: Array, *, name: str) -> float:
    """By scikit-learn's name; the mean over classes. A class that is never predicted, or has no label, counts as 0.

    NaN where no label counts, as in the two below.
    """
    with variables_kept():
        from sklearn import metrics

    counted = labels != IGNORED
    if not counted.any():
        return float("nan")
    return float(getattr(metrics, name)(labels[counted], predicted[counted], average="macro", zero_division=0.0))


def _correlation(predicted: Array, labels: Array) -> float:
    with variables_kept():
        from sklearn.metrics import matthews_corrcoef

    counted = labels != IGNORED
    if not counted.any():
        return float("nan")
    return float(matthews_corrcoef(labels[counted], predicted[counted]))


def _require_class(text: str, labels: Array, outputs: Sequence[Output], number: int) -> None:
    require_classes(text, labels, outputs)
    if not any((piece == number).any() for piece in pieces_of(labels)):
        raise refuse(f"{text} takes labels of class {number}; these have none")


def _of_one_class(predicted: Array, labels: Array, *, name: str, number: int) -> float:
    """By scikit-learn's name. A class that is never predicted counts as 0."""
    with variables_kept():
        from sklearn import metrics

    counted = labels != IGNORED
    if not counted.any():
        return float("nan")
    found = getattr(metrics, name)(labels[counted] == number, predicted[counted] == number, zero_division=0.0)
    return float(found)


def _metric_of_one_class(number: int, *, name: str, of: str) -> TaskMetric:
    return TaskMetric(f"{of} of class {number}", partial(_require_class, number=number), _predicted,
                      partial(_of_one_class, name=name, number=number), SCIKIT_LEARN, best_is_1=True)  # fmt: skip


def _scored(outputs: Array, labels: Array) -> Parts:
    rows = len(outputs)
    return outputs.astype(np.float64).reshape(rows, -1, outputs.shape[-1]), labels.reshape(rows, -1)


def _area(scores: Array, labels: Array) -> float:
    """Compute the area of the second of two classes, or the mean area of each of more against the others.

    A class without a label is left out. NaN where all labels are of one class.
    """
    with variables_kept():
        from sklearn.metrics import roc_auc_score

    counted = labels != IGNORED
    own = labels[counted]
    found = np.unique(own)
    if len(found) < 2:
        return float("nan")
    shares = shares_of(scores[counted])
    if shares.shape[-1] == 2:
        return float(roc_auc_score(own, shares[:, 1]))
    return float(np.mean([roc_auc_score(own == each, shares[:, each]) for each in found]))


def shares_of(scores: Array) -> Array:
    """Scores that are shares already stay as they are: the softmax of one row is no ranking over all rows."""
    from scipy.special import softmax

    if scores.min() >= 0 and np.allclose(scores.sum(axis=-1), 1, atol=1e-4):
        return scores
    found: Array = softmax(scores, axis=-1)
    return found


METRICS: Mapping[str, TaskMetric] = {
    "top1": TaskMetric("share of rows whose largest score is the right class", require_classes,
                       partial(hits, best=1), ratio, share=True, best_is_1=True),
    "top5": TaskMetric("share of rows whose five largest scores have the right class",
                       partial(require_classes, least=6), partial(hits, best=5), ratio, share=True, best_is_1=True),
    "precision": TaskMetric("precision of the classes with the largest scores, the mean over classes",
                            require_classes, _predicted, partial(_over_classes, name="precision_score"),
                            SCIKIT_LEARN, best_is_1=True),
    "recall": TaskMetric("recall of the classes with the largest scores, the mean over classes", require_classes,
                         _predicted, partial(_over_classes, name="recall_score"), SCIKIT_LEARN, best_is_1=True),
    "f1": TaskMetric("F1 of the classes with the largest scores, the mean over classes", require_classes,
                     _predicted, partial(_over_classes, name="f1_score"), SCIKIT_LEARN, best_is_1=True),
    "mcc": TaskMetric("Matthews correlation coefficient of the classes with the largest scores, from -1 to 1",
                      _require_several_classes, _predicted, _correlation, SCIKIT_LEARN, best_is_1=True),
    "roc_auc": TaskMetric("area under the ROC curve; of more than two classes the mean of each against the others",
                          _require_several_classes, _scored, _area, SCIKIT_LEARN, best_is_1=True,
                          resamples=_RESAMPLES_OF_RANKS, most_resampled=_MOST_RANKED),
    "perplexity": TaskMetric("perplexity of the right classes under the scores", require_classes, _surprise,
                             _perplexity, better="lower"),
}  # fmt: skip

FAMILIES: Mapping[str, Callable[[int], TaskMetric]] = {
    "precision": partial(_metric_of_one_class, name="precision_score", of="precision"),
    "recall": partial(_metric_of_one_class, name="recall_score", of="recall"),
    "f1": partial(_metric_of_one_class, name="f1_score", of="F1"),
}

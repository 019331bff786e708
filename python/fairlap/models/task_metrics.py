"""Metrics of a task on labelled data: how good a contestant's answers are, item by item.

A metric turns the outputs of a batch into a few numbers for each item; these are collected over all items, and give the
figure and its interval. Formulas come from NumPy, SciPy and scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.machine.variables import variables_kept

Array = npt.NDArray[Any]
Parts = tuple[Array, ...]  # each with one row for each item
LabelKind = Literal["class", "values"]

IGNORED = -100  # a label that does not count, as in PyTorch's cross-entropy
_RESAMPLES = 999
_CODE = "E_METRIC"


class Score(msgspec.Struct, frozen=True):
    """One metric of a contestant, with its 95 % interval over the items."""

    value: float
    low: float | None
    high: float | None
    interval: str  # how it was found; empty where there is none
    items: int


def accuracy_in(scores: Mapping[str, Score]) -> Score | None:
    """The share of right answers, if that was asked for."""
    return next((score for name, score in scores.items() if name.partition(":")[0] == "top1"), None)


def bounded_score_in(scores: Mapping[str, Score]) -> tuple[str, Score] | None:
    """The first metric that was asked for whose best value is 1."""
    return next(((name, score) for name, score in scores.items() if metric_named(name)[0].at_most_one), None)


class NotFinite(FairlapError):
    """An answer to an item is not a number."""

    code = "E_OUTPUT"


@dataclass(frozen=True)
class TaskMetric:
    meaning: str
    labels: LabelKind  # the number of the right class for each row of the output; or values of the output's shape
    parts: Callable[[Array, Array], Parts]
    value: Callable[..., float]
    least_classes: int = 2
    share: bool = False  # of right answers, so that its interval can be Wilson's
    at_most_one: bool = False  # from 0 to 1, and 1 is the best
    package: str = ""  # what it needs besides SciPy


def _hits(outputs: Array, labels: Array, best: int) -> Parts:
    """Right rows and all rows of each item. A tie with the right class counts as before it."""
    counted = labels != IGNORED
    right = np.take_along_axis(outputs, np.where(counted, labels, 0)[..., None], axis=-1)
    hit = counted & (np.count_nonzero(outputs >= right, axis=-1) <= best)
    return _per_item(hit), _per_item(counted)


def _surprise(outputs: Array, labels: Array) -> Parts:
    """Negative logarithms of the right classes' shares, and how many there are."""
    from scipy.special import log_softmax  # type: ignore[import-untyped,unused-ignore]

    counted = labels != IGNORED
    logs = log_softmax(outputs.astype(np.float64), axis=-1)
    right = np.take_along_axis(logs, np.where(counted, labels, 0)[..., None], axis=-1)[..., 0]
    return _per_item(np.where(counted, -right, 0.0)), _per_item(counted)


def _differences(outputs: Array, labels: Array, power: int) -> Parts:
    off = np.abs(outputs.astype(np.float64) - labels) ** power
    return _per_item(off), _per_item(np.ones_like(off))


def _classes(outputs: Array, labels: Array) -> Parts:
    rows = len(outputs)
    return outputs.argmax(axis=-1).reshape(rows, -1), labels.reshape(rows, -1)


def _per_item(array: Array) -> Array:
    sums: Array = array.reshape(len(array), -1).sum(axis=1)
    return sums


def _ratio(sums: Array, counts: Array) -> float:
    return float(sums.sum() / counts.sum())


def _perplexity(sums: Array, counts: Array) -> float:
    return float(np.exp(sums.sum() / counts.sum()))


def _over_classes(predicted: Array, labels: Array, *, name: str) -> float:
    """By scikit-learn's name; the mean over classes. A class that is never predicted, or has no label, counts as 0."""
    with variables_kept():
        from sklearn import metrics

    counted = labels != IGNORED
    return float(getattr(metrics, name)(labels[counted], predicted[counted], average="macro", zero_division=0.0))


METRICS: Mapping[str, TaskMetric] = {
    "top1": TaskMetric("share of rows whose largest score is the right class", "class", partial(_hits, best=1), _ratio,
                       share=True, at_most_one=True),
    "top5": TaskMetric("share of rows whose five largest scores have the right class", "class", partial(_hits, best=5),
                       _ratio, least_classes=6, share=True, at_most_one=True),
    "precision": TaskMetric("precision of the classes with the largest scores, the mean over classes", "class",
                            _classes, partial(_over_classes, name="precision_score"), at_most_one=True,
                            package="sklearn"),
    "recall": TaskMetric("recall of the classes with the largest scores, the mean over classes", "class", _classes,
                         partial(_over_classes, name="recall_score"), at_most_one=True, package="sklearn"),
    "f1": TaskMetric("F1 of the classes with the largest scores, the mean over classes", "class", _classes,
                     partial(_over_classes, name="f1_score"), at_most_one=True, package="sklearn"),
    "perplexity": TaskMetric("perplexity of the right classes under the scores", "class", _surprise, _perplexity),
    "mse": TaskMetric("mean square of the difference", "values", partial(_differences, power=2), _ratio),
    "mae": TaskMetric("mean absolute difference", "values", partial(_differences, power=1), _ratio),
}  # fmt: skip


def metric_named(text: str) -> tuple[TaskMetric, str]:
    """Of ``top1`` or ``top1:logits``: the metric, and the output that it scores; the first one where that is empty."""
    name, _, output = text.partition(":")
    if name not in METRICS:
        raise InvalidRequest(f"no metric named {name!r}; they are {', '.join(METRICS)}", code=_CODE)
    return METRICS[name], output


def require_installed(text: str) -> None:
    from importlib.util import find_spec

    metric, _ = metric_named(text)
    if metric.package and find_spec(metric.package) is None:
        raise InvalidRequest(f"the metric {text} needs scikit-learn: pip install 'fairlap[metrics]'", code=_CODE)


def require_labels(text: str, labels: Array, items: int, output: str, shape: tuple[int, ...]) -> None:
    """``shape`` is that of the output for one batch."""
    metric, _ = metric_named(text)
    if len(labels) != items:
        raise InvalidRequest(f"there are {len(labels):,} labels for {items:,} items of the inputs", code=_CODE)
    if metric.labels == "values":
        if labels.shape[1:] != shape[1:] or labels.dtype.kind not in "biuf" or not np.isfinite(labels).all():
            raise InvalidRequest(_other_shape(text, labels, output, shape[1:], "numbers"), code=_CODE)
        return
    if len(shape) < 2 or labels.dtype.kind not in "iu" or labels.shape[1:] != shape[1:-1]:
        raise InvalidRequest(_other_shape(text, labels, output, shape[1:-1], "whole numbers"), code=_CODE)
    classes = shape[-1]
    if classes < metric.least_classes:
        raise InvalidRequest(
            f"{text} needs at least {metric.least_classes} classes, and {output} has {classes}", code=_CODE
        )
    counted = labels[labels != IGNORED]
    if not counted.size or counted.min() < 0 or counted.max() >= classes:
        found = f"{counted.min()}..{counted.max()}" if counted.size else "none that count"
        raise InvalidRequest(
            f"labels must be within 0..{classes - 1}, the classes of {output} (got {found})", code=_CODE
        )


def _other_shape(text: str, labels: Array, output: str, shape: tuple[int, ...], kind: str) -> str:
    wanted = f"[items{''.join(f', {size}' for size in shape)}]"
    return (
        f"{text} takes labels of shape {wanted}, {kind}, for the output {output}; "
        f"these are {list(labels.shape)} of {labels.dtype}"
    )


def score_of(text: str, batches: list[Parts]) -> Score:
    metric, _ = metric_named(text)
    parts = tuple(np.concatenate(each) for each in zip(*batches, strict=True))
    value, items = metric.value(*parts), len(parts[0])
    if metric.share and (parts[1] == 1).all():
        from scipy.stats import binomtest  # type: ignore[import-untyped,unused-ignore]

        found = binomtest(int(parts[0].sum()), items).proportion_ci(method="wilson")
        return Score(value, float(found.low), float(found.high), "Wilson", items)
    if items < 2:
        return Score(value, None, None, "", items)
    from scipy.stats import bootstrap

    def of_items(places: Array) -> float:
        return metric.value(*(each[places] for each in parts))

    ends = bootstrap(
        (np.arange(items),), of_items, n_resamples=_RESAMPLES, vectorized=False, method="percentile", rng=0
    ).confidence_interval
    if ends.low == ends.high:  # such as where every answer is right: resampling shows nothing of what is not there
        return Score(value, None, None, "", items)
    return Score(value, float(ends.low), float(ends.high), f"bootstrap over {items:,} items", items)


def parts_of(text: str, outputs: Array, labels: Array) -> Parts:
    """Of one batch."""
    if not np.isfinite(outputs).all():
        raise NotFinite("it gave numbers that are not finite for the data of the metric")
    return metric_named(text)[0].parts(outputs, labels)

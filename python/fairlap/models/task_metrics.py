"""Metrics of a task on labelled data: how good a contestant's answers are, item by item.

A metric turns the outputs of a batch into a few numbers for each item; these are collected over all items, and give the
figure and its interval. Formulas come from NumPy, SciPy, scikit-learn, scikit-image, sacrebleu,
rouge-score, jiwer and pycocotools.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

import msgspec
import numpy as np

from fairlap.errors import FairlapError
from fairlap.models.array_files.npy_map import pieces_of
from fairlap.models.metrics import (
    boxes,
    calibration,
    classes,
    frames,
    images,
    open_images,
    rankings,
    spans,
    tokens,
    values,
)
from fairlap.models.metrics.metric import Array, Output, Parts, TaskMetric, refuse
from fairlap.suggestions import not_one_of

METRICS: Mapping[str, TaskMetric] = {
    name: metric
    for kind in (classes, calibration, spans, values, tokens, frames, boxes, open_images, images)
    for name, metric in kind.METRICS.items()
}
FAMILIES: Mapping[str, Callable[[int], TaskMetric]] = {
    **classes.FAMILIES,
    **rankings.FAMILIES,
    **images.FAMILIES,
    **tokens.FAMILIES,
    **frames.FAMILIES,
}
"""By the name before an @ and a number: ``f1@2`` is the F1 of class 2, ``ndcg@10`` counts the first ten."""
ACCURACY = "top1"
"""Of what a row's column of that name is."""


_OF_A_FAMILY = re.compile(r"(?P<name>\w+)@(?P<number>\d{1,6})")


class Score(msgspec.Struct, frozen=True):
    """One metric of a contestant, with its 95 % interval over the items."""

    value: float
    low: float | None
    high: float | None
    interval: str  # how it was found; empty where there is none
    items: int
    why_no_interval: str = ""


class NotFinite(FairlapError):
    """An answer to an item is not a number."""

    code = "E_OUTPUT"


def accuracy_in(scores: Mapping[str, Score]) -> Score | None:
    """Find the share of right answers, if that was asked for."""
    return next((score for name, score in scores.items() if name.partition(":")[0] == ACCURACY), None)


def bounded_score_in(scores: Mapping[str, Score]) -> tuple[str, Score] | None:
    """Find the first metric that was asked for whose best value is 1."""
    return next(((name, score) for name, score in scores.items() if metric_named(name).best_is_1), None)


def found_metric(text: str) -> TaskMetric | None:
    """Find ``top1``, ``top1:logits`` or ``f1@2``; None for another word, such as a column's name."""
    name = text.partition(":")[0]
    family = _OF_A_FAMILY.fullmatch(name)
    if family is not None and family["name"] in FAMILIES:
        return FAMILIES[family["name"]](int(family["number"]))
    return METRICS.get(name)


def metric_named(text: str) -> TaskMetric:
    """Find it as ``found_metric`` does; another word is refused."""
    if (found := found_metric(text)) is None:
        raise refuse(not_one_of(text.partition(":")[0], _forms(text)))
    return found


def _forms(text: str) -> list[str]:
    """List the names of all metrics, with the number that is given where there is one."""
    _, at, number = text.partition(":")[0].partition("@")
    families = [f"{name}@{number or 'NUMBER'}" for name in FAMILIES]
    return families if at else [*METRICS, *families]


def scored_outputs(text: str, among: Sequence[str]) -> tuple[str, ...]:
    """Name the outputs that a metric scores, in its order: those after the colon, with + between them."""
    metric, (_, colon, named) = metric_named(text), text.partition(":")
    names = tuple(named.split("+")) if colon else metric.outputs or tuple(among[:1])
    takes = len(metric.outputs) or 1
    if len(names) != takes:
        example = f"{text.partition(':')[0]}:{'+'.join(metric.outputs or ('OUTPUT',))}"
        raise refuse(f"{text} names {len(names)} outputs; write {example}")
    if len(set(names)) < len(names):
        raise refuse(f"{text} names {max(names, key=names.count)!r} twice; name {takes} outputs of the model")
    if missing := [name for name in names if name not in among]:
        raise refuse(f"{text}: the model has no output {missing[0]!r}; it has {', '.join(among)}")
    return names


def require_installed(text: str) -> None:
    package = metric_named(text).package
    if package is not None and find_spec(package.module) is None:
        raise refuse(f"the metric {text} needs {package.name}: pip install 'fairlap[{package.extra}]'")


def require_labels(text: str, labels: Array, items: int, outputs: Sequence[Output]) -> None:
    """Check that the labels fit; ``outputs`` are all that the model has."""
    if len(labels) != items:
        raise refuse(f"there are {len(labels):,} labels for {items:,} items of the inputs")
    metric = metric_named(text)
    if not metric.reads:  # rows of boxes are padded
        _require_finite(labels)
    by_name = {each.name: each for each in outputs}
    metric.require_fit(text, labels, [by_name[name] for name in scored_outputs(text, list(by_name))])


def _require_finite(labels: Array) -> None:
    """Name the first label that is missing in a table, or that is infinite."""
    before = 0
    for piece in pieces_of(labels) if labels.dtype.kind == "f" else ():
        wrong = np.argwhere(~np.isfinite(piece))
        if wrong.size:
            found = piece[tuple(wrong[0])]
            raise refuse(f"the label of item {before + wrong[0][0]:,} is {found}; give each item a number as its label")
        before += len(piece)


def parts_of(text: str, scored: Sequence[Array], labels: Array) -> Parts:
    """Of one batch: the outputs that the metric scores, and the labels of their items."""
    if not all(np.isfinite(each).all() for each in scored):
        raise NotFinite("it gave numbers that are not finite for the data of the metric")
    return metric_named(text).parts(*scored, labels)


def value_of(text: str, batches: Sequence[Parts]) -> float:
    return metric_named(text).value(*joined(batches))


def score_of(text: str, batches: Sequence[Parts], resamples: int | None = None) -> Score:
    """Compute the figure and its interval; ``resamples`` are fewer than the metric's where many scores are made."""
    metric, parts = metric_named(text), joined(batches)
    value, items = metric.value(*parts), len(parts[0])
    if not np.isfinite(value):
        raise refuse(f"{text} has no value for these answers and labels: what it computes is {value}")
    if metric.share and (parts[1] == 1).all():
        from scipy.stats import binomtest  # type: ignore[import-untyped,unused-ignore]

        found = binomtest(int(parts[0].sum()), items).proportion_ci(method="wilson")
        return Score(value, float(found.low), float(found.high), "Wilson", items)
    if items < 2:
        return Score(value, None, None, "", items, "there is one item")
    if why := metric.why_not_resampled(parts):
        return Score(value, None, None, "", items, why)
    from scipy.stats import DegenerateDataWarning, bootstrap

    def of_items(places: Array) -> float:
        return metric.value(*(each[places] for each in parts))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)  # of ends that are not finite, which are seen below
        ends = bootstrap(
            (np.arange(items),),
            of_items,
            n_resamples=resamples or metric.resamples,
            vectorized=False,
            method="percentile",
            rng=0,
        ).confidence_interval
    if not np.isfinite([ends.low, ends.high]).all():
        return Score(value, None, None, "", items, "some resamples of the items have no such figure")
    if ends.low == ends.high:  # such as where every answer is right: resampling shows nothing of what is not there
        return Score(value, None, None, "", items, "every resample of the items gives the same figure")
    return Score(value, float(ends.low), float(ends.high), f"bootstrap over {items:,} items", items)


def joined(batches: Sequence[Parts]) -> Parts:
    """Of all items, in their order."""
    return tuple(np.concatenate(each) for each in zip(*batches, strict=True))

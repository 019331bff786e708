"""Metrics of spans, such as answers in a text: one output scores where a span begins, one where it ends.

An item's labels are the first and the last place of each right span; rows of -100 fill up items with fewer than
others. The best of several counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairlap.models.metrics.metric import IGNORED, Array, Output, Parts, TaskMetric, ratio, refuse


def _require_spans(text: str, labels: Array, outputs: Sequence[Output]) -> None:
    starts, ends = outputs
    if len(starts.shape) != 2 or ends.shape[1:] != starts.shape[1:]:
        given = ", ".join(f"{each.name} is {list(each.shape)}" for each in outputs)
        raise refuse(f"{text} takes two outputs [items, places], the scores of first and last places; {given}")
    if labels.dtype.kind not in "iu" or labels.ndim not in (2, 3) or labels.shape[-1] != 2:
        raise refuse(
            f"{text} takes labels [items, 2] or [items, spans, 2], the first and last places of right spans; these "
            f"are {list(labels.shape)} of {labels.dtype}"
        )
    spans, places = labels.reshape(len(labels), -1, 2), starts.shape[1]
    filling = (spans == IGNORED).all(axis=-1)
    if empty := np.flatnonzero(filling.all(axis=-1)).tolist():
        raise refuse(f"{text} takes at least one span for each item; item {empty[0]} has none")
    first, last = spans[~filling].T
    if (first < 0).any() or (last >= places).any() or (first > last).any():
        raise refuse(f"a span begins at 0 or later, ends before {places}, and no earlier than it begins")


def _best_spans(starts: Array, ends: Array) -> tuple[Array, Array]:
    """Find the pair with the largest sum that does not end before it begins."""
    begun = np.maximum.accumulate(starts, axis=1)
    last = (begun + ends).argmax(axis=1)
    before = np.arange(starts.shape[1]) <= last[:, None]
    return np.where(before, starts, -np.inf).argmax(axis=1), last


def _matches(starts: Array, ends: Array, labels: Array) -> Parts:
    """Whether each item's span is one of the right ones."""
    spans = labels.reshape(len(labels), -1, 2)
    first, last = _best_spans(starts.astype(np.float64), ends.astype(np.float64))
    hits = ((spans[..., 0] == first[:, None]) & (spans[..., 1] == last[:, None])).any(axis=1)
    return hits.astype(np.int64), np.ones(len(labels), dtype=np.int64)


def _overlaps(starts: Array, ends: Array, labels: Array) -> Parts:
    """Score each item by the harmonic mean of precision and recall of places."""
    spans = labels.reshape(len(labels), -1, 2)
    first, last = (each[:, None] for each in _best_spans(starts.astype(np.float64), ends.astype(np.float64)))
    shared = np.minimum(last, spans[..., 1]) - np.maximum(first, spans[..., 0]) + 1
    lengths = (last - first + 1) + (spans[..., 1] - spans[..., 0] + 1)
    found = np.where(spans[..., 0] == IGNORED, 0.0, 2 * np.maximum(shared, 0) / lengths)
    return found.max(axis=1), np.ones(len(labels))


_OUTPUTS = ("start_logits", "end_logits")

METRICS: Mapping[str, TaskMetric] = {
    "exact_match": TaskMetric("share of items whose best span is a right one", _require_spans, _matches, ratio,
                              outputs=_OUTPUTS, share=True, best_is_1=True),
    "span_f1": TaskMetric("mean F1 of the places that the best span shares with a right one", _require_spans,
                          _overlaps, ratio, outputs=_OUTPUTS, best_is_1=True),
}  # fmt: skip

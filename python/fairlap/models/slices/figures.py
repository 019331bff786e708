"""What scores of groups and of corrupted data share: figures that may not exist, and when they are resampled."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from fairlap.models.metrics.metric import Parts
from fairlap.models.task_metrics import Score, metric_named, score_of
from fairlap.verdict.scores.resampled import FEWEST_ITEMS

RESAMPLES = 199
FEWEST_DIFFERING = 10  # items: of fewer, resampling does not show how much chance there is in a difference


class NoChange(Exception):
    """Says why there is none."""


def require_resampled(metric: str, parts: Parts, items: int, differing: int) -> None:
    """Raise NoChange where resampling says too little, or takes too long. ``differing`` are answered differently."""
    if why := metric_named(metric).why_not_resampled(parts):
        raise NoChange(why)
    if items < FEWEST_ITEMS:
        raise NoChange(f"a verdict on this metric takes {FEWEST_ITEMS} items (got {items})")
    if differing < FEWEST_DIFFERING:
        raise NoChange(f"the two answer {differing} items differently, and a verdict takes {FEWEST_DIFFERING}")


def value_of(metric: str, parts: Parts) -> float:
    """NaN where these items have no such figure."""
    with _quietly():
        return float(metric_named(metric).value(*parts))


def score_or_none(metric: str, parts: Parts) -> Score | None:
    """None where these items have no such figure. Many are made, so intervals are of fewer resamples than usual."""
    if not np.isfinite(value_of(metric, parts)):
        return None
    with _quietly():
        return score_of(metric, [parts], resamples=RESAMPLES)


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence NumPy and scikit-learn about items that have no such figure."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

"""Holm's step-down correction, with the level at which each comparison was in the end tested.

statsmodels corrects p values as well, but does not say which level each hypothesis met, and the interval of
a comparison has to be drawn at that level or it could contradict the verdict. The p values agree with
statsmodels' to the last digit; a test checks that.

What is guaranteed: of all differences claimed, the chance that any is false is at most alpha, whatever
the dependence between them. Each interval taken alone covers at least as often as 1 - alpha. All
intervals together cover less often than that, since Holm's gain over Bonferroni has to come from somewhere;
docs/explanation/verdict.md has the measured figure.
"""

from typing import NamedTuple

import numpy as np

from .arrays import Counts, Flags, Floats


class HolmSteps(NamedTuple):
    """Arrays shaped like the p values: shown or not, the level each interval is drawn at, adjusted p."""

    shown: Flags
    levels: Floats
    adjusted: Floats


def holm(p_values: Floats, alpha: float) -> HolmSteps:
    """Correct the last axis for being one family.

    A comparison that passes Bonferroni's bound keeps that level, which gives the widest interval that still
    agrees with the verdict; one that passes only by Holm's step has the level of its step; those not shown
    have the level at which Holm stopped.
    """
    m = p_values.shape[-1]
    order = np.argsort(p_values, axis=-1, kind="stable")
    ordered = np.take_along_axis(p_values, order, axis=-1)
    steps = alpha / np.arange(m, 0, -1)
    passed = np.logical_and.accumulate(ordered <= steps, axis=-1)
    stopped = np.minimum(passed.sum(axis=-1, keepdims=True), m - 1)
    own = steps[_first_of_equals(ordered)]
    levels = np.where(passed, np.where(ordered <= steps[0], steps[0], own), steps[stopped])
    adjusted = np.minimum(1.0, np.maximum.accumulate(ordered * np.arange(m, 0, -1), axis=-1))
    back = np.argsort(order, axis=-1)
    return HolmSteps(
        np.take_along_axis(passed, back, axis=-1),
        np.take_along_axis(levels, back, axis=-1),
        np.take_along_axis(adjusted, back, axis=-1),
    )


def _first_of_equals(ordered: Floats) -> Counts:
    """Where each run of equal p values starts: equal ones share the strictest of their steps."""
    places = np.broadcast_to(np.arange(ordered.shape[-1]), ordered.shape)
    starts = np.ones(ordered.shape, dtype=np.bool_)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    first: Counts = np.maximum.accumulate(np.where(starts, places, 0), axis=-1)
    return first

"""Mistakes of code that people write around their own models: what it does to the loss, its gradients and its batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairlap.models.training.reference import Batch, FirstSlopes, Mistake

if TYPE_CHECKING:
    from fairlap.models.training.exercise import Exercise


def mistakes_of_own_code(exercise: Exercise) -> Iterator[tuple[str, Exercise]]:
    """Each with the steps that it makes."""
    yield "it does not clear its gradients between steps", replace(exercise, mistake=Mistake(accumulates=True))
    labels = exercise.batches[0].labels
    if labels is None:
        return
    what = "it adds up the loss of its items instead of averaging it"
    yield what, replace(exercise, mistake=Mistake(gradient_times=float(labels.size)))
    shifted = [Batch(batch.inputs, np.roll(batch.labels, 1)) for batch in exercise.batches if batch.labels is not None]
    yield "its labels are shifted by one", replace(exercise, batches=shifted, first_slopes=FirstSlopes())
    halves = [half for batch in exercise.batches if (half := first_half(batch)) is not None]
    if len(halves) == len(exercise.batches):
        yield "it trains on the first half of each batch", replace(exercise, batches=halves, first_slopes=FirstSlopes())


def first_half(batch: Batch) -> Batch | None:
    """Of every input and of the labels along their first axis; None where these have not the same size."""
    labels = batch.labels
    if labels is None or labels.ndim == 0 or len(labels) < 2:
        return None
    sizes = {array.shape[:1] for array in batch.inputs.values()}
    if sizes != {labels.shape[:1]}:
        return None
    half = len(labels) // 2
    return Batch({name: array[:half] for name, array in batch.inputs.items()}, labels[:half])

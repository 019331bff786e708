"""Prepared contestants as the system under test, one for each serving thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant
from fairlap.models.arrays import Arrays
from fairlap.models.spec import BATCH, Spec, Tensor
from fairlap.scenarios.load.system_under_test import Answer, FirstTokens, Issue, Serve

BatchCall = Callable[[Sequence[int]], tuple[Contestant, Any]]
"""One call on several items: the contestant that is prepared for such a batch, and what its call returned. The first
rows of its outputs are theirs, in their order; others fill the batch up."""


@dataclass(frozen=True)
class LoadGenThread:
    """What one serving thread calls. ``contestant`` is prepared for batch 1."""

    contestant: Contestant
    batch_call: BatchCall | None = None


def issue_of(
    threads: Sequence[LoadGenThread],
    spec: Spec,
    items: Sequence[Arrays],
    *,
    largest_batch: int = 1,
    longest_wait_s: float = 0.0,
    first_tokens: FirstTokens | None = None,
) -> Issue:
    """Describe how contestants serve ``items``, which are inputs of batch 1.

    Waiting for the device is part of serving them, and so is all that a ``batch_call`` does. All contestants have the
    same settings, so a thread enters those of the first. ``first_tokens`` is called by answers that are made token by
    token; without it no tokens are counted.
    """
    stamps = threads[0].contestant.stamps

    def answers(served: tuple[Contestant, Any], count: int) -> list[Answer]:
        outputs = served[0].outputs(served[1])
        return [
            np.concatenate([_of_item(outputs[tensor.name], tensor, place) for tensor in spec.outputs])
            for place in range(count)
        ]

    return Issue(
        [_serve_of(thread, items) for thread in threads],
        answers,
        1 if threads[0].batch_call is None else largest_batch,
        longest_wait_s,
        threads[0].contestant.in_thread or nullcontext,
        0 if stamps is None or first_tokens is None else stamps.tokens,
        first_tokens or FirstTokens(),
    )


def _serve_of(thread: LoadGenThread, items: Sequence[Arrays]) -> Serve:
    contestant, batch_call = thread.contestant, thread.batch_call
    single = [contestant.bind(inputs) for inputs in items]

    def serve(group: Sequence[int]) -> tuple[Contestant, Any]:
        served = batch_call(group) if batch_call and len(group) > 1 else (contestant, single[group[0]]())
        if served[0].done is not None:
            served[0].done(served[1])
        return served

    return serve


def output_shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Of a batch of one item, for reading the answers that LoadGen logged."""
    return {tensor.name: tensor.sized(1) for tensor in spec.outputs}


def _of_item(output: np.ndarray, tensor: Tensor, place: int) -> np.ndarray:
    of_item = np.take(output, place, tensor.shape.index(BATCH)) if BATCH in tensor.shape else output
    return np.asarray(of_item, np.float32).reshape(-1)

"""Whether contestants learn alike over many epochs, judged by how differently blocks learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.scenarios.process_result import ProcessResult

_FEWEST_BLOCKS = 3
_MOST_APART = 1.5  # as far as blocks are from each other
_SMALLEST_LOSS = 1e-12


def curves_apart(processes: Mapping[str, Sequence[ProcessResult]]) -> Notice | None:
    """Warn where contestants of the same block differ more than blocks do.

    Blocks begin with other weights and take other batches. Rounding makes curves of the same training part, but no
    further than that.

    ``processes`` are by contestant.
    """
    losses = {
        name: {process.block: _losses(process) for process in own if process.learning is not None and process.finished}
        for name, own in processes.items()
    }
    blocks = sorted(set.intersection(*(set(own) for own in losses.values()))) if losses else []
    if len(losses) < 2 or len(blocks) < _FEWEST_BLOCKS:
        return None
    every = [set(own[block]) for own in losses.values() for block in blocks]
    epochs = sorted(set.intersection(*every))
    if not epochs:
        return None
    ordered = [[[own[block][epoch] for epoch in epochs] for own in losses.values()] for block in blocks]
    logs = np.log(ordered)  # (blocks, contestants, epochs)
    within = np.sqrt(logs.var(axis=1, ddof=1).mean(axis=0))
    between = np.sqrt(logs.var(axis=0, ddof=1).mean(axis=0))
    apart = float(np.median(within / np.maximum(between, 1e-300)))
    if apart <= _MOST_APART:
        return None
    return Notice(
        "W_CURVES_APART",
        f"contestants that took the same batches differ {apart:.2g} times as much in their held-out loss as blocks do",
    )


def _losses(process: ProcessResult) -> dict[int, float]:
    """By epoch; of those that were scored."""
    assert process.learning is not None
    found = enumerate(process.learning.evaluations)
    return {epoch: max(each.loss, _SMALLEST_LOSS) for epoch, each in found if each.loss is not None}

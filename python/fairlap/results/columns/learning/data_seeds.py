"""Whether the order of two contestants depends on the weights and inputs that a block's data seed drew."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from fairlap.race.counted_blocks import WorkBlocks
from fairlap.results.estimates import Cell

_FEWEST_BLOCKS = 2  # of each seed


def order_depends_on_data(basis: WorkBlocks) -> Cell:
    """Yes where every block of one seed puts two contestants in one order, and every block of another in the other."""
    if basis.table is None:
        return Cell(None, basis.why_no_verdict)
    seeds = np.array([process.data_seed for process in next(iter(basis.compared.values()))])
    if len(set(seeds.tolist())) < 2:
        return Cell(None, "every block had the same data")
    known = [seed for seed in sorted(set(seeds.tolist())) if np.count_nonzero(seeds == seed) >= _FEWEST_BLOCKS]
    if len(known) < 2:
        return Cell(None, "too few blocks had each of the data")
    logs = basis.table.log_figures
    for first, second in combinations(range(logs.shape[1]), 2):
        signs = {tuple(np.unique(np.sign(logs[seeds == seed, first] - logs[seeds == seed, second]))) for seed in known}
        if {(-1.0,), (1.0,)} <= signs:
            return Cell("yes")
    return Cell("no")

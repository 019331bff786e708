"""A table of blocks: one figure per contestant and block, as logarithms.

A block is one independently drawn random order of all contestants, each in a fresh process. That draw is
what makes the verdict valid: if two contestants are equal, each block's log ratio between them is as
likely to be positive as negative, whatever the noise of the machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .arrays import Flags, Floats
from .errors import OneBlock, OneContestant, UnequalBlocks
from .metric import LATENCY, Metric
from .positive import log_of_positive

Evidence = Literal["between processes", "within one process"]


@dataclass(frozen=True, eq=False)
class BlockTable:
    """The log figures of one metric on one workload, shaped (blocks, contestants)."""

    contestants: tuple[str, ...]
    log_figures: Floats
    metric: Metric = LATENCY
    workload: str = ""
    evidence: Evidence = "between processes"

    @property
    def blocks(self) -> int:
        return int(self.log_figures.shape[0])

    def log_figures_of(self, contestant: str) -> Floats:
        """One contestant's log figures, one per block."""
        column: Floats = self.log_figures[:, self.contestants.index(contestant)]
        return column

    def keeping(self, kept: Flags) -> "BlockTable":
        """The same table with only the blocks a noise gate kept."""
        left = int(kept.sum())
        if left < 2:
            raise OneBlock(f"{self.workload or 'table'}: {left} of {self.blocks} blocks are left; run more")
        return BlockTable(self.contestants, self.log_figures[kept], self.metric, self.workload, self.evidence)


def block_table(
    figures: Mapping[str, Sequence[float] | Floats],
    *,
    metric: Metric = LATENCY,
    workload: str = "",
    evidence: Evidence = "between processes",
) -> BlockTable:
    """Build a table from one list of positive figures per contestant; position i is block i for everyone."""
    if len(figures) < 2:
        raise OneContestant(f"{workload or 'table'}: {len(figures)} contestants; a comparison needs two")
    columns = {name: log_of_positive(values, name) for name, values in figures.items()}
    sizes = {name: column.size for name, column in columns.items()}
    if len(set(sizes.values())) != 1:
        listed = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise UnequalBlocks(f"blocks differ: {listed}; drop every block that is not complete")
    if next(iter(sizes.values())) < 2:
        raise OneBlock(f"{workload or 'table'}: fewer than two blocks; nothing was repeated")
    return BlockTable(tuple(figures), np.column_stack(list(columns.values())), metric, workload, evidence)

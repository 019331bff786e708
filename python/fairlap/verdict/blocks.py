"""A table of blocks: one value per contestant and block, as logarithms, checked at the door.

A block is one independently drawn random order of all contestants, each in a fresh process. That draw is
what makes the verdict valid: if two contestants are equal, each block's log ratio between them is as
likely to be positive as negative, whatever the noise of the machine.

A verdict on bad input would look like any other verdict, so values that are not finite or not positive are errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairlap.errors import InvalidRequest
from fairlap.verdict.metric import LATENCY, Metric

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


class BadInput(InvalidRequest):
    """The base of every error the verdict raises about the figures or options it was given."""


class UnequalBlocks(BadInput):
    """The contestants do not have one figure each in every block."""


class NotFinite(BadInput):
    """A figure is NaN or infinite."""


class NotPositive(BadInput):
    """A figure is zero or negative, so it has no logarithm and no ratio."""


class OneSample(BadInput):
    """A process gave fewer than two samples, which show nothing of their spread."""


class OneBlock(BadInput):
    """There are fewer than two blocks, so nothing was repeated."""


class UnlikeQuantities(BadInput):
    """The contestants were not all measured by the same quantity, so their figures cannot be compared."""

    code = "E_UNLIKE_QUANTITIES"


class OneContestant(BadInput):
    """There are fewer than two contestants, or two share a name, so there is no pair to compare."""


class BadOption(BadInput):
    """A level, margin or other option is outside its range."""


def require_between(name: str, value: float, low: float, high: float) -> None:
    """Refuse an option outside the open range from low to high."""
    if not low < value < high:
        raise BadOption(f"{name} must be between {low:g} and {high:g} (got {value})")


def log_of_positive(figures: Sequence[float] | Floats, whose: str) -> Floats:
    """Return the logarithms, or raise for the figure that has none."""
    values = np.asarray(figures, dtype=np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        place = int(np.argmin(finite))
        found = f"{whose}: figure {place + 1} is {values.flat[place]}"
        raise NotFinite(f"{found}; leave out what was not measured")
    if (values <= 0).any():
        place = int(np.argmax(values <= 0))
        found = f"{whose}: figure {place + 1} is {values.flat[place]}"
        raise NotPositive(f"{found}; a ratio needs figures above zero")
    return np.log(values)


Evidence = Literal["between processes", "within one process", "of running servers"]


@dataclass(frozen=True, eq=False)
class Figures:
    """One contestant's figures, one per block, with the quantity that all of them are of."""

    quantity: str  # wall_ns, device_span_ns, ...
    values: Sequence[float] | Floats


@dataclass(frozen=True, eq=False)
class BlockTable:
    """The log figures of one metric on one workload, shaped (blocks, contestants), all of one quantity."""

    contestants: tuple[str, ...]
    log_figures: Floats
    metric: Metric = LATENCY
    workload: str = ""
    evidence: Evidence = "between processes"
    quantity: str = ""  # of every figure; empty for figures that were given without one
    halves: Mapping[str, Floats] = field(default_factory=dict)  # by contestant: see ``find_modes``
    interchangeable: bool = True  # all labels of a block were drawn alike; False: those of each pair were

    @property
    def blocks(self) -> int:
        return int(self.log_figures.shape[0])

    def log_figures_of(self, contestant: str) -> Floats:
        """One contestant's log figures, one per block."""
        column: Floats = self.log_figures[:, self.contestants.index(contestant)]
        return column

    def first(self, blocks: int) -> BlockTable:
        """Return the table as it was after so many blocks."""
        if blocks == self.blocks:
            return self
        halves = {name: each[:blocks] for name, each in self.halves.items()}
        return replace(self, log_figures=self.log_figures[:blocks], halves=halves)


def block_table(
    figures: Mapping[str, Figures] | Mapping[str, Sequence[float] | Floats],
    *,
    metric: Metric = LATENCY,
    workload: str = "",
    evidence: Evidence = "between processes",
    interchangeable: bool = True,
) -> BlockTable:
    """Build a table from one list of positive figures per contestant; position i is block i for everyone.

    Figures of different quantities make no table: they are not the same measure of the contestants.
    """
    if len(figures) < 2:
        raise OneContestant(f"{workload or 'table'}: {len(figures)} contestants; a comparison needs two")
    known = {name: each if isinstance(each, Figures) else Figures("", each) for name, each in figures.items()}
    columns = {name: log_of_positive(each.values, name) for name, each in known.items()}
    sizes = {name: column.size for name, column in columns.items()}
    if len(set(sizes.values())) != 1:
        listed = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise UnequalBlocks(f"blocks differ: {listed}; drop every block that is not complete")
    if next(iter(sizes.values())) < 2:
        raise OneBlock(f"{workload or 'table'}: fewer than two blocks; nothing was repeated")
    quantity = one_quantity({name: each.quantity for name, each in known.items()})
    logs = np.column_stack(list(columns.values()))
    return BlockTable(tuple(figures), logs, metric, workload, evidence, quantity, interchangeable=interchangeable)


def one_quantity(by_contestant: Mapping[str, str]) -> str:
    """Find the quantity that all were measured by; raise UnlikeQuantities where there are several."""
    if len(set(by_contestant.values())) > 1:
        listed = ", ".join(f"{name} by {quantity or 'an unknown one'}" for name, quantity in by_contestant.items())
        raise UnlikeQuantities(f"measured by different quantities: {listed}; repeat the race to measure all alike")
    return next(iter(by_contestant.values()))

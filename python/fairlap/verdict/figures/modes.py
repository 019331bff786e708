"""Modes between processes: clusters of process estimates with nothing in between, and what separates them.

A process draws its heap layout, its core and its hash seed at the start and keeps them, so the figures of
identical processes can fall into groups a factor of two apart. The mean or median over such groups
is a figure that no process shows, so modes are reported with their shares and never averaged.

Rule: two or three groups of at least two processes and a tenth of all, separated by gaps that are wide
against the spread inside the groups and wider than 3 %. The threshold, 60 / n and at least 3 spreads,
keeps false alarms on one-peaked noise near or below 1 % (2 % for an exponential tail); tests measure it.

A process is measured for about as long as an episode of disturbance lasts (``EPISODE_S``), and its figure may be that
of an episode, which is no property of the process. So nine processes of ten must be in the same mode in both halves of
their rounds, or be measured for longer than two episodes; otherwise no modes are claimed.

What may separate the modes is scored by the share of processes that it sorts into the right mode, and tested by
permuting the mode labels, since with a dozen processes some covariate always looks related.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fairlap.verdict.blocks import Counts, Floats, UnequalBlocks

_FEWEST_PROCESSES = 6
_STAYING = 0.9  # of the processes
_SMALLEST_LOG_GAP = float(np.log(1.03))


@dataclass(frozen=True)
class Mode:
    """One group of processes: the median figure, the share of all, and which processes they are."""

    value: float
    share: float
    processes: tuple[int, ...]


@dataclass(frozen=True)
class Modes:
    """The modes in rising order of their figure; a single one means that no modes were found."""

    modes: tuple[Mode, ...]

    @property
    def several(self) -> bool:
        return len(self.modes) > 1

    def labels(self) -> Counts:
        """For each process the index of its mode."""
        labels = np.zeros(sum(len(mode.processes) for mode in self.modes), dtype=np.int64)
        for index, mode in enumerate(self.modes):
            labels[list(mode.processes)] = index
        return labels


def find_modes(log_figures: Floats, halves: Floats | None = None) -> Modes:
    """Group the log figures of one contestant's processes.

    ``halves``, shaped (processes, 2), has the log figures of the halves of each process's rounds over the process's
    own; NaN where they are unknown.
    """
    found = _groups(log_figures)
    if found.several and halves is not None and not _last(found, log_figures[:, None] + halves):
        return one_mode(log_figures)
    return found


def one_mode(log_figures: Floats) -> Modes:
    return Modes((Mode(float(np.exp(np.median(log_figures))), 1.0, tuple(range(log_figures.size))),))


def _last(found: Modes, halves: Floats) -> bool:
    """Whether processes stay in their mode."""
    values = np.log([mode.value for mode in found.modes])
    nearest = np.abs(halves[..., None] - values).argmin(axis=-1)
    stays = (nearest == found.labels()[:, None]) & ~np.isnan(halves)
    return float(stays.all(axis=1).mean()) >= _STAYING


def _groups(log_figures: Floats) -> Modes:
    n = log_figures.size
    order = np.argsort(log_figures, kind="stable")
    ordered = log_figures[order]
    cuts: tuple[int, ...] = ()
    # No cut passes without one wide gap; most figures have none, and a report asks for tens of thousands.
    if n >= _FEWEST_PROCESSES and (np.diff(ordered) > _SMALLEST_LOG_GAP).any():
        cuts = _three_groups(ordered) or _two_groups(ordered)
    edges = (0, *cuts, n)
    groups = [order[start:end] for start, end in pairwise(edges)]
    return Modes(
        tuple(
            Mode(float(np.exp(np.median(log_figures[group]))), group.size / n, tuple(sorted(map(int, group))))
            for group in groups
        )
    )


def _two_groups(ordered: Floats) -> tuple[int, ...]:
    n, smallest = ordered.size, _smallest_group(ordered.size)
    return _best_cut(ordered, np.arange(smallest, n - smallest + 1)[:, None])


def _three_groups(ordered: Floats) -> tuple[int, ...]:
    n, smallest = ordered.size, _smallest_group(ordered.size)
    first, second = np.triu_indices(n + 1, k=smallest)
    allowed = (first >= smallest) & (second <= n - smallest)
    return _best_cut(ordered, np.column_stack([first[allowed], second[allowed]]))


def _best_cut(ordered: Floats, cuts: Counts) -> tuple[int, ...]:
    """Choose the cut whose narrowest gap is widest against the spread inside, if that passes the threshold."""
    n, groups = ordered.size, cuts.shape[1] + 1
    if cuts.shape[0] == 0:
        return ()
    centred = ordered - ordered.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    squares = np.concatenate([[0.0], np.cumsum(centred**2)])
    edges = np.column_stack([np.zeros(len(cuts), dtype=np.int64), cuts, np.full(len(cuts), n)])
    sizes = np.diff(edges, axis=1)
    inside = (np.diff(squares[edges], axis=1) - np.diff(sums[edges], axis=1) ** 2 / sizes).sum(axis=1)
    spread = np.sqrt(np.maximum(inside, 0.0) / (n - groups))
    narrowest_gap = (ordered[cuts] - ordered[cuts - 1]).min(axis=1)
    wide_enough = (narrowest_gap > _SMALLEST_LOG_GAP) & (narrowest_gap > max(3.0, 60 / n) * spread)
    if not wide_enough.any():
        return ()
    best = int(np.argmax(np.where(wide_enough, narrowest_gap / np.maximum(spread, 1e-12), 0.0)))
    return tuple(int(cut) for cut in cuts[best])


def _smallest_group(n: int) -> int:
    return max(2, -(-n // 10))


_PERMUTATIONS = 1999
_NEVER_TRIM = (
    "the C library gives memory back after each call; start the process with "
    "MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TOP_PAD_=67108864"
)
REMEDIES: Mapping[str, str] = {
    "page faults per call": _NEVER_TRIM,
    "migrations": "the scheduler moves the process between cores; pin it to one set of cores",
    "core": "the cores are not alike; pin every contestant to the same ones, or vary them in every block",
    "position in block": "the neighbour before it leaves something behind; pause between processes",
    "block": "the machine changed during the run; look at what else ran, and repeat",
}


@dataclass(frozen=True)
class ModeCause:
    """A covariate that goes with the modes: its typical value in each, in the order of the modes."""

    covariate: str
    typical: tuple[str, ...]
    sorted_rightly: float
    p: float
    remedy: str | None


def mode_causes(
    modes: Modes, covariates: Mapping[str, Sequence[float] | Sequence[str]], *, alpha: float = 0.05
) -> tuple[ModeCause, ...]:
    """Find the covariates that separate the modes, the best first; Bonferroni over all that were tried."""
    if not modes.several:
        return ()
    labels = modes.labels()
    rng = np.random.default_rng(labels.size)
    draws = np.stack([labels, *(rng.permutation(labels) for _ in range(_PERMUTATIONS))])
    causes = []
    for name, values in covariates.items():
        if len(values) != labels.size:
            raise UnequalBlocks(f"covariate {name} has {len(values)} values for {labels.size} processes")
        column = np.asarray(values)
        score = _sorted_rightly_by_number if column.dtype.kind in "iufb" else _sorted_rightly_by_kind
        scores = score(column, draws)
        p = float(np.mean(scores >= scores[0]))
        if p <= alpha / len(covariates):
            typical = tuple(_typical(column[labels == mode]) for mode in range(len(modes.modes)))
            causes.append(ModeCause(name, typical, float(scores[0]), p, REMEDIES.get(name)))
    return tuple(sorted(causes, key=lambda cause: (-cause.sorted_rightly, cause.p)))


def _sorted_rightly_by_number(column: Floats, draws: Counts) -> Floats:
    """Give each process the mode whose median covariate is nearest; the share that is right, per draw."""
    modes = range(int(draws.max()) + 1)
    medians = np.stack([np.nanmedian(np.where(draws == mode, column, np.nan), axis=1) for mode in modes])
    distances = np.abs(column - medians[:, :, None])
    own = np.take_along_axis(distances, draws[None], axis=0)[0]
    # A tie between two modes sorts nothing: the process must be strictly nearest to its own.
    nearer_or_equal = (distances <= own).sum(axis=0)
    right: Floats = (nearer_or_equal == 1).mean(axis=1)
    return right


def _sorted_rightly_by_kind(column: Floats, draws: Counts) -> Floats:
    """Give each process the commonest mode of its kind; the share that is right, per draw."""
    right = np.zeros(draws.shape[0])
    for kind in np.unique(column):
        inside = draws[:, column == kind]
        right += np.max([(inside == mode).sum(axis=1) for mode in range(int(draws.max()) + 1)], axis=0)
    share: Floats = right / column.size
    return share


def _typical(values: Floats) -> str:
    if values.dtype.kind in "iufb":
        middle = float(np.median(values))
        text = f"{middle:g}"
        return f"{middle:.0f}" if "e+" in text else text
    kinds, counts = np.unique(values, return_counts=True)
    return str(kinds[np.argmax(counts)])

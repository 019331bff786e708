"""Which measured circumstance separates the modes, and what is known to help.

Each covariate is scored by the share of processes that it sorts into the right mode, and tested by
permuting the mode labels, since with a dozen processes some covariate always looks related.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .arrays import Counts, Floats
from .errors import UnequalBlocks
from .modes import Modes

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
    """The covariates that separate the modes, the best first; Bonferroni over all that were tried."""
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
        return f"{float(np.median(values)):g}"
    kinds, counts = np.unique(values, return_counts=True)
    return str(kinds[np.argmax(counts)])

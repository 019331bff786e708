"""From the samples of one process to its figure: the logarithm of a quantile of the steady part.

One process gives one number, because samples inside a process share everything the process drew at its
start; 100 samples of one process, tested as 100, are called different from an identical process in 58 %
of cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .arrays import Floats
from .doubts import Doubt, FewSamplesBeyond, NoSteadyState
from .errors import OneSample, require_between
from .positive import log_of_positive
from .steady_state import Course, SteadyState


@dataclass(frozen=True)
class ProcessFigure:
    """One process's log figure, what it rests on, and what to doubt about it."""

    log_value: float
    samples: int
    doubts: tuple[Doubt, ...] = ()

    @property
    def value(self) -> float:
        return float(np.exp(self.log_value))


def process_figure(
    samples: Sequence[float] | Floats, steady: SteadyState, *, quantile: float = 0.5, whose: str = "process"
) -> ProcessFigure:
    """The log of a quantile of the steady part, 0.5 being the median."""
    require_between("quantile", quantile, 0.0, 1.0)
    part = log_of_positive(samples, whose)[steady.steady_from :]
    if part.size < 2:
        raise OneSample(f"{whose}: {part.size} steady samples; at least two are needed, better thirty")
    doubts: list[Doubt] = []
    if part.size * min(quantile, 1 - quantile) < 5 and quantile != 0.5:
        doubts.append(FewSamplesBeyond(quantile, part.size))
    if steady.course is Course.NO_STEADY_STATE:
        doubts.append(NoSteadyState())
    return ProcessFigure(float(np.quantile(part, quantile)), part.size, tuple(doubts))


def throughput(time_figure: ProcessFigure, items_per_call: float, seconds_per_unit: float = 1e-9) -> ProcessFigure:
    """Items per second from a time per call; 1e-9 says that the times are in nanoseconds."""
    log_items = float(log_of_positive([items_per_call / seconds_per_unit], "items per call")[0])
    return ProcessFigure(log_items - time_figure.log_value, time_figure.samples, time_figure.doubts)

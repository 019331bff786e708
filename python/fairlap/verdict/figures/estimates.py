"""From the samples of one process to one number, and from its processes to the estimate of a contestant, or its modes.

One process gives one number, because samples inside a process share everything the process drew at its
start; 100 samples of one process, tested as 100, are called different from an identical process in 58 %
of cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.verdict.blocks import Floats, OneSample, log_of_positive, require_between
from fairlap.verdict.exact_tests.signed_rank import sign_interval
from fairlap.verdict.figures.modes import Modes, find_modes, one_mode
from fairlap.verdict.figures.steady_state import Course, SteadyState
from fairlap.verdict.warnings import FewSamplesBeyond, NoSteadyState, StatisticalWarning


@dataclass(frozen=True)
class ProcessFigure:
    """One process's log figure, what it rests on, and its warnings."""

    log_value: float
    samples: int
    warnings: tuple[StatisticalWarning, ...] = ()

    @property
    def value(self) -> float:
        return float(np.exp(self.log_value))


def process_figure(
    samples: Sequence[float] | Floats, steady: SteadyState, *, quantile: float = 0.5, whose: str = "process"
) -> ProcessFigure:
    """Take the log of a quantile of the steady part, 0.5 being the median."""
    require_between("quantile", quantile, 0.0, 1.0)
    part = log_of_positive(samples, whose)[steady.steady_from :]
    if part.size < 2:
        raise OneSample(f"{whose}: {part.size} steady samples; at least two are needed, better thirty")
    warnings: list[StatisticalWarning] = []
    if part.size * min(quantile, 1 - quantile) < 5 and quantile != 0.5:
        warnings.append(FewSamplesBeyond(quantile, part.size))
    if steady.course is Course.NO_STEADY_STATE:
        warnings.append(NoSteadyState())
    return ProcessFigure(float(np.quantile(part, quantile)), part.size, tuple(warnings))


def throughput(time_figure: ProcessFigure, items_per_call: float, seconds_per_unit: float = 1e-9) -> ProcessFigure:
    """Items per second from a time per call; 1e-9 for times in nanoseconds."""
    log_items = float(log_of_positive([items_per_call / seconds_per_unit], "items per call")[0])
    return ProcessFigure(log_items - time_figure.log_value, time_figure.samples, time_figure.warnings)


@dataclass(frozen=True)
class ContestantFigure:
    """The median over processes with the sign interval; all three are None if there are several modes."""

    value: float | None
    low: float | None
    high: float | None
    modes: Modes


def contestant_figure(
    log_figures: Floats, *, halves: Floats | None = None, one_process: bool = False, alpha: float = 0.05
) -> ContestantFigure:
    """Summarise one contestant's processes; ``halves`` as in ``find_modes``.

    Groups of turns of ``one_process`` are no modes: a turn is shorter than an episode of disturbance.
    The interval assumes that processes are draws from one distribution. It describes this contestant
    alone; whether two differ is decided inside the blocks, where the machine's noise cancels.
    """
    require_between("alpha", alpha, 0.0, 1.0)
    modes = one_mode(log_figures) if one_process else find_modes(log_figures, halves)
    if modes.several:
        return ContestantFigure(None, None, None, modes)
    low, high = sign_interval(log_figures, alpha)
    value = float(np.exp(np.median(log_figures)))
    return ContestantFigure(value, float(np.exp(low)), float(np.exp(high)), modes)

"""One contestant's own figure over all its processes, or its modes if no single figure describes them."""

from dataclasses import dataclass

import numpy as np

from .arrays import Floats
from .errors import require_between
from .modes import Modes, find_modes
from .sign_interval import sign_interval


@dataclass(frozen=True)
class ContestantFigure:
    """The median over processes with the sign interval; all three are None if there are several modes."""

    value: float | None
    low: float | None
    high: float | None
    modes: Modes


def contestant_figure(log_figures: Floats, *, alpha: float = 0.05) -> ContestantFigure:
    """Summarise one contestant's processes.

    The interval assumes that processes are draws from one distribution. It describes this contestant
    alone; whether two differ is decided inside the blocks, where the machine's noise cancels.
    """
    require_between("alpha", alpha, 0.0, 1.0)
    modes = find_modes(log_figures)
    if modes.several:
        return ContestantFigure(None, None, None, modes)
    low, high = sign_interval(log_figures, alpha)
    value = float(np.exp(np.median(log_figures)))
    return ContestantFigure(value, float(np.exp(low)), float(np.exp(high)), modes)

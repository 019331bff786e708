"""The settings of a race of solvers: the error at which their times are compared, and the tolerances they solve at.

The command line imports this module before it knows what is asked, so it must stay light.
"""

from __future__ import annotations

import math

from fairlap.scenarios.setting import Setting

USUAL_ERROR = 1e-6
USUAL_TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
_LEAST = 1e-13  # rounding decides below it
_MOST_TOLERANCES = 24


def _between(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and _LEAST <= found < 1):
        raise ValueError(f"give a number of at least {_LEAST:g} and below 1, such as 1e-6")
    return found


def _tolerances_in(text: str) -> tuple[float, ...]:
    """From the loosest to the tightest, each once."""
    found = tuple(sorted({_between(part) for part in text.split(",")}, reverse=True))
    if not 1 < len(found) <= _MOST_TOLERANCES:
        raise ValueError(f"give 2 to {_MOST_TOLERANCES} different tolerances, such as 1e-3,1e-6,1e-9")
    return found


ERROR = Setting("error", "Compare the times that solvers take to this error.  [default: 1e-6]", _between, "ERROR")
TOLERANCES = Setting(
    "tolerances", "Relative tolerances to solve at.  [default: 1e-3 to 1e-10 by tens]", _tolerances_in, "NUMBER,..."
)
SETTINGS = (ERROR, TOLERANCES)

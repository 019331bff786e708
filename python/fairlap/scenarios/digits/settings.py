"""The setting of a race of digits: how many a contestant must keep to be ranked.

The command line imports this module before it knows what is asked, so it must stay light.
"""

from __future__ import annotations

import math

from fairlap.scenarios.setting import Setting

_MOST = 15.0  # of the float64 reference


def _digits_in(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= _MOST:
        raise ValueError(f"give a number from 0 to {_MOST:g}, such as 3.5")
    return found


DIGITS = Setting("digits", "Rank those with N digits or more.  [default: half of the possible]", _digits_in, "N")
SETTINGS = (DIGITS,)

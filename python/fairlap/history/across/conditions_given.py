"""What a user knows of where runs ran: the price of an hour and the carbon of the grid, of all runs or of one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from fairlap.errors import InvalidRequest

Read = TypeVar("Read")

_CARBON = re.compile(r"(?P<grams>\d+(\.\d+)?)\s*(?P<unit>kg|g)(CO2e?)?\s*/\s*kWh", re.IGNORECASE)
_J_PER_KWH = 3.6e6


def grams_per_joule(text: str) -> float:
    """``400g/kWh`` or ``0.4kg/kWh``, of CO2 equivalents."""
    found = _CARBON.fullmatch(text.strip())
    if found is None:
        raise InvalidRequest(f"{text!r} is not the carbon of a grid; write it as 400g/kWh or 0.4kg/kWh")
    grams = float(found["grams"]) * (1000 if found["unit"].lower() == "kg" else 1)
    if not math.isfinite(grams):
        raise InvalidRequest(f"{text!r} is not the carbon of a grid; write it as 400g/kWh or 0.4kg/kWh")
    return grams / _J_PER_KWH


def by_run(option: str, given: Sequence[str], runs: Sequence[str], read: Callable[[str], Read]) -> dict[str, Read]:
    """``VALUE`` is of all runs, ``RUN=VALUE`` of one of those that were named; the latter wins."""
    of_all: Read | None = None
    own: dict[str, Read] = {}
    for text in given:
        run, separator, value = text.rpartition("=")
        if not separator:
            if of_all is not None:
                raise InvalidRequest(f"{option} is given twice for all runs; write RUN={text} for one of them")
            of_all = read(text)
        elif run not in runs:
            raise InvalidRequest(f"{option} {text}: {run!r} is not among the runs, {', '.join(runs)}")
        elif run in own:
            raise InvalidRequest(f"{option} is given twice for {run}; leave one out")
        else:
            own[run] = read(value)
    return {run: own.get(run, of_all) for run in runs if run in own or of_all is not None}  # type: ignore[misc]

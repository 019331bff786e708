"""When requests of an open loop are due, whatever the server does: at random, evenly, in bursts, or as recorded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fairlap.engine.load import random_arrivals_ns
from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD

Times = npt.NDArray[np.float64]
Kind = Literal["poisson", "constant", "gamma", "trace"]

_PLAIN: dict[str, Kind] = {"poisson": "poisson", "constant": "constant", "trace": "trace"}
_GAMMA = re.compile(r"gamma:cv=(\d{1,3}(?:\.\d{1,9})?)")
_LEAST_CV, _MOST_CV = 0.01, 10.0
_GAPS = 3  # the stream of random numbers


@dataclass(frozen=True)
class Arrivals:
    """``cv`` is the coefficient of variation of the times between requests: 1 at random, more in bursts."""

    kind: Kind = "poisson"
    cv: float = 1.0

    @property
    def text(self) -> str:
        return f"gamma:cv={self.cv:g}" if self.kind == "gamma" else self.kind

    def due_ns(self, requests: int, rate_per_s: float, seed: int) -> Times:
        """Draw so many at exactly this rate: a renewal process, given that so many come in its time."""
        if self.kind == "constant":
            return np.linspace(0.0, 1e9 * requests / rate_per_s, requests, endpoint=False)
        if self.kind != "gamma":
            return random_arrivals_ns(requests, rate_per_s, seed)
        gaps = np.random.default_rng([seed, _GAPS]).gamma(1 / self.cv**2, size=requests + 1)
        ends = np.cumsum(gaps)
        found: Times = ends[:-1] * (1e9 * requests / rate_per_s / ends[-1])
        return found


def arrivals_named(text: str) -> Arrivals:
    """Read ``poisson``, ``constant``, ``gamma:cv=2`` or ``trace``."""
    if text in _PLAIN:
        return Arrivals(_PLAIN[text])
    found = _GAMMA.fullmatch(text)
    if found is None or not _LEAST_CV <= float(found[1]) <= _MOST_CV:
        raise InvalidRequest(
            f"--arrivals {text} is not poisson, constant, trace or gamma:cv=2, whose coefficient of variation is from "
            f"{_LEAST_CV:g} to {_MOST_CV:g}",
            code=E_LOAD,
        )
    return Arrivals("gamma", float(found[1]))

"""A step of the rate: as usual, beyond what a server can serve for a while, and as usual again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD
from fairlap.request.fields.streams import Overload
from fairlap.request.units import Seconds, Share
from fairlap.scenarios.streams.workload.arrivals import Arrivals

_TIMES_WATCHED = 3.0  # as long as the overload lasts
_BAND = 0.2
_FEWEST = 10  # requests before it, so that there is a median to come back to
_MOST_REQUESTS = 100_000


@dataclass(frozen=True)
class Step:
    """When requests of a turn are due; the first ones are before the overload, and the last ones after it."""

    due_ns: npt.NDArray[np.float64]
    before: int
    during: int
    begins_ns: float
    ends_ns: float

    @property
    def is_before(self) -> npt.NDArray[np.bool_]:
        return np.arange(len(self.due_ns)) < self.before

    @property
    def is_after(self) -> npt.NDArray[np.bool_]:
        return np.arange(len(self.due_ns)) >= self.before + self.during

    def only(self, these: npt.NDArray[np.integer[Any]] | None) -> Step:
        """Leave out the other requests, where not all have a result."""
        if these is None:
            return self
        before, until = np.searchsorted(these, (self.before, self.before + self.during)).tolist()
        return replace(self, due_ns=self.due_ns[these], before=before, during=until - before)


def overload_named(text: str) -> Overload:
    """Read ``40:10s``, with ``:watch=60s`` and ``:band=10%`` if given."""
    rate, *rest = text.split(":")
    try:
        [lasts, *options] = rest
        given = dict(each.split("=") for each in options)
        rate_per_s, lasts_s = float(rate), float(Seconds(lasts))
        watched_s = float(Seconds(given.pop("watch", f"{_TIMES_WATCHED * lasts_s}s")))
        band = float(Share(given.pop("band", _BAND)))
    except (ValueError, InvalidRequest):
        raise _refused(text) from None
    if given or not 0 < rate_per_s * (lasts_s + watched_s) <= _MOST_REQUESTS:
        raise _refused(text)
    return Overload(rate_per_s, lasts_s, watched_s, band)


def step_of(overload: Overload, rate_per_s: float, before_s: float, arrivals: Arrivals, seed: int) -> Step:
    """Draw it; each of its three parts has exactly its rate."""
    before = max(round(rate_per_s * before_s), _FEWEST)
    parts = (
        (before, rate_per_s),
        (max(round(overload.rate_per_s * overload.lasts_s), 1), overload.rate_per_s),
        (max(round(rate_per_s * overload.watched_s), _FEWEST), rate_per_s),
    )
    begins_ns = np.cumsum([0.0, *(1e9 * count / rate for count, rate in parts)])
    due_ns = [
        begin_ns + arrivals.due_ns(count, rate, seed + place)
        for place, ((count, rate), begin_ns) in enumerate(zip(parts, begins_ns, strict=False))
    ]
    return Step(np.concatenate(due_ns), before, parts[1][0], float(begins_ns[1]), float(begins_ns[2]))


def _refused(text: str) -> InvalidRequest:
    return InvalidRequest(
        f"--overload {text} is not a rate per second and how long it lasts, such as 40:10s or "
        f"40:10s:watch=60s:band=10%, with at most {_MOST_REQUESTS:,} requests",
        code=E_LOAD,
    )

"""What the client adds to the times of a server: as many requests as it answered, to one that does nothing.

They come as often as the server answered or, where that is more, as often as keeps the client at work for a small share
of the time. So it is soon over, and nothing that the client adds is missed. That server writes all pieces of an answer
at once, and with them when it had the request and when it wrote them. What is left of a time is the client's, the
loopback's and, on the same cores, the wait of both for a core. It is not as slow as the server on purpose: a client
that cannot follow makes a server look slow, and would hide behind that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap.scenarios.streams.figures import answered_per_s
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.streams_found import ClientFloor, Percentiles

_QUANTILES = (0.5, 0.9, 0.99)
_FEWEST_REQUESTS, _MOST_REQUESTS = 20, 100
_LONGEST_S = 2.0  # or as long as the load
_SHARE_AT_WORK = 0.15  # of a core: few requests then wait for another one


def requests_for_floor(served: Served) -> tuple[int, float]:
    """Return how many, and how many in a second."""
    answered, took_s = int(served.answered.sum()), served.elapsed_s
    requests = min(max(answered, _FEWEST_REQUESTS), _MOST_REQUESTS)
    cpu_s = max(served.client_share * took_s / answered, 1e-6)  # of an answer
    slowest = _FEWEST_REQUESTS / max(took_s, _LONGEST_S)
    return requests, max(answered_per_s(served), _SHARE_AT_WORK / cpu_s, slowest)


@dataclass(frozen=True)
class FloorTimes:
    """What a client added to each answer, in nanoseconds."""

    requests: int
    first_token: npt.NDArray[np.float64]
    per_token: npt.NDArray[np.float64]
    whole_answer: npt.NDArray[np.float64]

    @classmethod
    def of_all(cls, clients: Sequence[FloorTimes]) -> FloorTimes:
        first, per_token, whole = (
            np.concatenate([np.zeros(0), *(getattr(each, name) for each in clients)])
            for name in ("first_token", "per_token", "whole_answer")
        )
        return cls(sum(each.requests for each in clients), first, per_token, whole)

    @property
    def floor(self) -> ClientFloor:
        return ClientFloor(
            requests=self.requests,
            answered=len(self.whole_answer),
            first_token=_percentiles(self.first_token),
            per_token=_percentiles(self.per_token),
            whole_answer=_percentiles(self.whole_answer),
        )


def client_floor(served: Served) -> ClientFloor:
    return floor_times(served).floor


def floor_times(served: Served) -> FloorTimes:
    """Compare when the client had each piece with when it was written, which is what it says."""
    first, per_token, whole = [], [], []
    started_ns = served.from_ns + served.lateness_ns
    for number, answer in enumerate(served.answers):
        if answer.failure is not None:
            continue
        had_request_ns, *wrote_ns = map(int, answer.text.split())
        load_began_ns = answer.came_ns[0] - served.first_ns[number]
        sending_ns = had_request_ns - load_began_ns - started_ns[number]
        late_ns = np.subtract(answer.came_ns, wrote_ns).astype(np.float64)
        first.append(sending_ns + late_ns[0])
        if len(wrote_ns) > 1:
            per_token.append((answer.came_ns[-1] - answer.came_ns[0]) / (len(wrote_ns) - 1))
        whole.append(sending_ns + late_ns[-1])
    return FloorTimes(len(served.answers), *(np.array(each, np.float64) for each in (first, per_token, whole)))


def _percentiles(times_ns: npt.NDArray[np.float64]) -> Percentiles | None:
    return Percentiles(*map(float, np.quantile(times_ns, _QUANTILES))) if times_ns.size else None

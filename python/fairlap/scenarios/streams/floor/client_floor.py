"""What the client adds to the times of a server: as many requests a second as it answered, to one that does nothing.

That one writes all pieces of an answer at once, and with them when it had the request and when it wrote them. What is
left of a time is the client's, the loopback's and, on the same cores, the wait of both for a core. It is not as slow as
the server on purpose: a client that cannot follow makes a server look slow, and would hide behind that.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.scenarios.contract import Unqualified
from fairlap.scenarios.streams.figures import Percentiles, StreamFigures
from fairlap.scenarios.streams.issue import Served

E_CLIENT_LIMIT = "E_CLIENT_LIMIT"
_MOST_SHARE, _LEAST_NS = 0.2, 1e6
_MOST_OF_A_CORE = 0.9
_QUANTILES = (0.5, 0.9, 0.99)


class ClientFloor(msgspec.Struct, frozen=True, kw_only=True):
    """What the client adds to times, by percentile of the requests that it sent to a server of known times."""

    requests: int
    answered: int
    first_token: Percentiles | None  # None where no request was answered
    per_token: Percentiles | None  # of pieces that all came at once; None where there was one
    whole_answer: Percentiles | None  # likewise


def client_floor(served: Served) -> ClientFloor:
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
    return ClientFloor(
        requests=len(served.answers),
        answered=len(whole),
        first_token=_percentiles(first),
        per_token=_percentiles(per_token),
        whole_answer=_percentiles(whole),
    )


def _percentiles(times_ns: Sequence[float]) -> Percentiles | None:
    return Percentiles(*map(float, np.quantile(times_ns, _QUANTILES))) if times_ns else None


def why_client_limits(floor: ClientFloor | None, figures: StreamFigures) -> Unqualified | None:
    """Why a row's times are the client's rather than the server's.

    It adds more than a fifth, and more than 1 ms; or it used all that the interpreter lock lets a process use.
    """
    if floor is None:
        return None
    if floor.answered < floor.requests:
        failed = f"{floor.requests - floor.answered:,} of {quantity_text.count(floor.requests, 'request')}"
        return Unqualified(f"{failed} of the client to a server of its own had no whole answer", E_CLIENT_LIMIT)
    if figures.client_share > _MOST_OF_A_CORE:
        return Unqualified(f"the client used {quantity_text.share(figures.client_share)} of a core", E_CLIENT_LIMIT)
    for what, added, measured in (
        ("first token", floor.first_token, figures.first_token),
        ("whole answer", floor.whole_answer, figures.end_to_end),
    ):
        if added is None or measured is None:
            continue
        if added.p50_ns > max(_MOST_SHARE * measured.p50_ns, _LEAST_NS):
            adds, of_all = quantity_text.duration(added.p50_ns), quantity_text.duration(measured.p50_ns)
            return Unqualified(f"the client adds {adds} to the {what}, which took {of_all}", E_CLIENT_LIMIT)
    return None


def floor_text(floor: ClientFloor) -> str:
    parts = (("first token", floor.first_token), ("per token", floor.per_token))
    shown = [
        f"{what} p50 {quantity_text.duration(each.p50_ns)}, p90 {quantity_text.duration(each.p90_ns)}"
        for what, each in parts
        if each is not None
    ]
    return "; ".join(shown) or "no answer"

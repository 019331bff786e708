"""What slow clients and those that hang up do to the others: the same load without them, with them, and who is served.

Whether a server goes on computing for a client that has left shows in the next answer, which is later then by as much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.clients.client import RawAnswer
from fairlap.scenarios.streams.clients.manner import LEFT, Manner
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.figures import Tokens
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.streams_found import ManneredFound

_TIMES = 3
_LEAST_REST_NS = 5e6  # of an answer, without which it does not show whether the server goes on


@dataclass(frozen=True)
class Mannered:
    alone: Served  # the same load, all of whose clients are like most
    work_after_hang_up_share: float | None


def work_after_hang_up(contestant: Contestant, asked: StreamsAsked) -> float | None:
    """Return how much of the rest of an answer a server computes after its client hung up at the first token.

    By how much later the next first token comes, as a share of how long the rest takes. None where that does not show.
    """
    return share_after_hang_up(lambda manner: contestant.asked_alone(asked, manner))


def share_after_hang_up(ask: Callable[[Manner], RawAnswer]) -> float | None:
    """By medians of a few, since other programs delay some."""
    turns = [tuple(ask(each) for each in (Manner(), Manner(leaves_after=1), Manner())) for _ in range(_TIMES)]
    if any(alone.failure or not left.has_left or then.failure for alone, left, then in turns):
        return None
    alone_ns, then_ns = (median(_first_ns(turn[place]) for turn in turns) for place in (0, 2))
    rest_ns = median(alone.events[-1][0] - alone.events[0][0] for alone, _, _ in turns)
    rest_ns -= median(then.began_ns - left.events[0][0] for _, left, then in turns)  # computed before it was asked
    return max((then_ns - alone_ns) / rest_ns, 0.0) if rest_ns >= _LEAST_REST_NS else None


def _first_ns(answer: RawAnswer) -> int:
    return answer.events[0][0] - answer.began_ns


def mannered_found(served: Served, mannered: Mannered) -> ManneredFound:
    slow = np.array([each.bytes_per_s is not None for each in served.manners], bool)
    aborting = np.array([each.leaves_after is not None for each in served.manners], bool)
    failures = [None if each.failure is None else each.failure.code for each in served.answers]
    hung_up = np.array([each == LEFT for each in failures], bool)
    failed = np.array([each is not None for each in failures], bool) & ~hung_up
    took_ns = Tokens.of(served).end_to_end_ns
    return ManneredFound(
        slow=int(slow.sum()),
        slow_answered=int((slow & served.answered).sum()),
        slow_p50_ns=_median(took_ns[slow]),
        aborting=int(aborting.sum()),
        hung_up=int(hung_up.sum()),
        failed=int((failed & (slow | aborting)).sum()),
        others_p50_ns=_median(took_ns[~(slow | aborting)]),
        alone_p50_ns=_median(Tokens.of(mannered.alone).end_to_end_ns),
        work_after_hang_up_share=mannered.work_after_hang_up_share,
    )


def _median(times_ns: npt.NDArray[np.float64]) -> float | None:
    known = times_ns[np.isfinite(times_ns)]
    return float(np.median(known)) if known.size else None

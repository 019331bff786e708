"""When the tokens of requests came.

Each thread answers one group of requests after the other, so the answers that it stamped and the groups that it served
are in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairlap.scenarios.load.load_messages import TokenTimes

if TYPE_CHECKING:
    from fairlap.engine.load import LoadResult
    from fairlap.engine.token_stamps import TokenStamps

Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TokensOfRequests:
    """Of the requests that were answered and whose answers are still in memory."""

    first_ns: Times  # from when the request was due to its first token
    each_ns: Times  # the mean of its tokens after that

    def in_time(self, bound_s: float) -> int:
        return int((self.first_ns <= 1e9 * bound_s).sum())

    @property
    def times(self) -> TokenTimes:
        first50, first99 = (float(each) for each in np.quantile(self.first_ns, (0.5, 0.99)))
        each50, each99 = (float(each) for each in np.quantile(self.each_ns, (0.5, 0.99)))
        return TokenTimes(first50, first99, each50, each99)


def tokens_of(
    result: LoadResult, idents: Sequence[int | None], stamps: Sequence[TokenStamps]
) -> TokensOfRequests | None:
    """``idents`` are those of the threads by the number of their worker. None where no answer left stamps."""
    if result.left_in_call:  # which answer is whose is not known then
        return None
    unique = list({id(each): each for each in stamps}.values())
    firsts, per_token = [], []
    answered = np.isfinite(result.completed_ns)
    for worker, ident in enumerate(idents):
        requests = np.flatnonzero(result.worker == worker)  # those among them that came too late have answers as well
        groups, members = np.unique(result.group[requests], return_inverse=True)
        came_ns = _of_thread(unique, ident, len(groups))
        # Their memory holds the newest answers; of many requests those of the first ones are gone.
        member = members - (len(groups) - len(came_ns))
        known = (member >= 0) & answered[requests]
        requests, member = requests[known], member[known]
        first_ns, last_ns = came_ns[member, 0], came_ns[member, 1]
        firsts.append(result.completed_ns[requests] - (last_ns - first_ns) - result.due_ns[requests])
        per_token.append((last_ns - first_ns) / max(stamps[0].tokens - 1, 1))
    first_ns, each_ns = np.concatenate(firsts), np.concatenate(per_token)
    if not len(first_ns):
        return None
    return TokensOfRequests(first_ns, each_ns)


def _of_thread(stamps: Sequence[TokenStamps], ident: int | None, count: int) -> Times:
    """When the first and the last token came of the newest answers of a thread, in the order in which they began."""
    began, ends = [np.zeros(0)], [np.zeros((0, 2))]
    for each in stamps:
        threads, began_ns, came_ns = each.with_threads(_ALL)
        own = threads == ident
        began.append(began_ns[own])
        ends.append(came_ns[own][:, [0, -1]])
    order = np.argsort(np.concatenate(began), kind="stable")
    newest: Times = np.concatenate(ends)[order][len(order) - min(count, len(order)) :]
    return newest


_ALL = 2**40

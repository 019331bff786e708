"""What several clients measured, as one: every request with its own times, none averaged and none put into a bin.

Times of an answer are differences on the clock of the client that asked. Only when each client's load began is carried
over from one clock to the other, with the uncertainty that the comparison of the clocks has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairlap.scenarios.streams.issue import OfClient, Served
from fairlap.scenarios.streams.several_clients.load_share import Dealt

_FROM_START = ("from_ns", "first_ns", "last_ns", "ended_ns")


def merged(parts: Sequence[tuple[Dealt, OfClient]]) -> Served:
    """Merge what at least one client measured, in the order in which sessions were drawn."""
    began_ns = [of.clock.here_ns(of.served.began_at_ns) for _, of in parts]
    clients = [replace(of, began_ns=own - min(began_ns)) for (_, of), own in zip(parts, began_ns, strict=True)]
    session_of_row = [
        np.repeat(dealt.places, [len(each.tokens) for each in dealt.share.sessions]) for dealt, _ in parts
    ]
    order = np.argsort(np.concatenate(session_of_row), kind="stable")
    shifted = [_since_first(of) for of in clients]

    def column(name: str) -> Any:
        return np.concatenate([getattr(each, name) for each in shifted])[order]

    def listed(name: str) -> Any:
        values = [value for each in shifted for value in getattr(each, name)]
        return tuple(values[place] for place in order)

    return replace(
        shifted[0],
        **{name: column(name) for name in (*_FROM_START, "lateness_ns", "prompts")},
        **{name: listed(name) for name in ("answers", "sent", "manners")},
        elapsed_s=max(each.elapsed_s for each in shifted),
        client_share=max(each.client_share for each in shifted),  # of the busiest: each has a core
        uncertainty_ns=max(each.uncertainty_ns for each in shifted),
        busy_until_ns=min(each.busy_until_ns for each in shifted),
        by_client=tuple(clients),
        sessions=np.sort(np.concatenate([dealt.places for dealt, _ in parts])),
    )


def _since_first(of: OfClient) -> Served:
    """Count from the start of the first client's load."""
    served = of.served
    return replace(
        served,
        **{name: getattr(served, name) + of.began_ns for name in _FROM_START},
        elapsed_s=served.elapsed_s + of.began_ns / 1e9,
        busy_until_ns=served.busy_until_ns + of.began_ns,
    )

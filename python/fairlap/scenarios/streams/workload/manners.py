"""Which of the requests are of clients that read slowly or hang up: a drawn share, the same for all servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD
from fairlap.request.fields.streams import Manners
from fairlap.request.units import Share
from fairlap.scenarios.streams.clients.manner import Manner
from fairlap.scenarios.streams.workload.sessions import Session

_BYTES_PER_S = 1000.0  # some five tokens, about as fast as people read
_LEAST_BYTES_PER_S, _MOST_BYTES_PER_S = 1.0, 1e9
_WHO, _WHEN = 6, 7  # streams of random numbers


def slow_clients_named(text: str) -> tuple[float, float]:
    """Read ``10%`` or ``10%:500``: a share, and the bytes per second at which they read."""
    share, _, rate = text.partition(":")
    try:
        bytes_per_s = float(rate) if rate else _BYTES_PER_S
    except ValueError:
        bytes_per_s = 0.0
    if not _LEAST_BYTES_PER_S <= bytes_per_s <= _MOST_BYTES_PER_S:
        raise InvalidRequest(
            f"--slow-clients {text} reads at no number of bytes per second; write 10%:500", code=E_LOAD
        )
    return _share_of("--slow-clients", text, share), bytes_per_s


def abort_named(text: str) -> float:
    return _share_of("--abort", text, text)


def _share_of(option: str, text: str, share: str) -> float:
    try:
        return float(Share(share))
    except InvalidRequest as error:
        raise InvalidRequest(f"{option} {text}: {error}", code=error.code) from None


def with_manners(sessions: Sequence[Session], manners: Manners, seed: int) -> list[Session]:
    """Let exactly these shares of single requests be slow or hang up, each of the latter after some of its tokens."""
    order = np.random.default_rng([seed, _WHO]).permutation(len(sessions)).tolist()
    slow, leaving = (round(share * len(sessions)) for share in (manners.slow_share, manners.abort_share))
    of_tokens = np.random.default_rng([seed, _WHEN]).random(len(sessions))
    found = list(sessions)
    for place in order[:slow]:
        found[place] = replace(found[place], manner=Manner(bytes_per_s=manners.slow_bytes_per_s))
    for place in order[slow : slow + leaving]:
        after = 1 + int(of_tokens[place] * (found[place].tokens[0] - 1))
        found[place] = replace(found[place], manner=Manner(leaves_after=after))
    return found

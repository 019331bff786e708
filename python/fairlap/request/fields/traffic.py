"""Traffic that a contestant is to serve, from which the number of its instances follows; it is not offered to it."""

from __future__ import annotations

import math

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.request.units import require_within_a_day

E_LOAD = "E_LOAD"
MOST_USERS = 10**9
_ROUNDING = 1e-9


class Traffic(msgspec.Struct, frozen=True):
    """Users who ask, wait for the answer, think, and ask again."""

    users: int
    think_s: float = 0.0  # on average

    def requests_per_s(self, response_s: float) -> float:
        """How often they ask, by the interactive response time law; infinite where they neither think nor wait."""
        return math.inf if self.think_s + response_s <= 0 else self.users / (self.think_s + response_s)

    def users_per_instance(self, rate_per_s: float, response_s: float) -> float:
        """Return how many users ask at this rate where answers take so long."""
        return rate_per_s * (self.think_s + response_s)

    def instances(self, users_per_instance: float) -> int:
        """Return how many instances it takes when each serves as many users."""
        return max(math.ceil(self.users / users_per_instance - _ROUNDING), 1)


def traffic_of(users: int | None, think_s: float | None) -> Traffic | None:
    """Check what a user gave; None where no traffic was."""
    require_within_a_day("--think", think_s)
    if users is None:
        if think_s is not None:
            raise InvalidRequest("--think is of the traffic's --users; give both", code=E_LOAD)
        return None
    if not 1 <= users <= MOST_USERS:
        raise InvalidRequest(f"--users must be between 1 and {MOST_USERS:,} (got {users})", code=E_LOAD)
    return Traffic(users, 0.0 if think_s is None else float(think_s))

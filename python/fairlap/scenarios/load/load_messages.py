"""The messages of a race of load, and what a process showed of the requests that it served.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from fairlap.scenarios.asking import MOST_RAW_BYTES, Ask, Reply
from fairlap.scenarios.load.loadgen_messages import LoadGenResult

TrialKind = Literal["capacity", "lone", "search", "at_largest_rate", "curve", "one_item", "unique_items"]
"""What a trial is for. Those of one item and of unique items are compared: kept answers make the first fast."""

LimitedBy = Literal["bound", "first_token", "capacity", "lone_request", "no_rate", "budget", ""]
"""Why the largest rate is not larger, or why there is none; empty while it is searched for."""

STAMPS = ("due_ns", "issued_ns", "started_ns", "completed_ns")
"""Of a request, in nanoseconds since the start of its trial; not-a-number for what did not happen."""

BYTES_OF_STAMPS = 8 * len(STAMPS)


class TokenTimes(msgspec.Struct, frozen=True):
    """Of answers that come token by token."""

    first_p50_ns: float  # from when the request was due to its first token
    first_p99_ns: float
    per_token_p50_ns: float  # the mean of a request's tokens after the first; 0 where there is but one
    per_token_p99_ns: float


class LoadTimes(msgspec.Struct, frozen=True):
    p50_ns: float
    p90_ns: float
    p99_ns: float
    service_p50_ns: float  # of the call that answered a request
    issue_lateness_p99_ns: float  # from when a request was due to when it was in the queue
    tokens: TokenTimes | None = None
    mean_ns: float | None = None


class LoadTrial(Reply, frozen=True, tag="load_trial"):
    """What became of them. Latency counts from when a request was due."""

    kind: TrialKind
    rate_per_s: float | None  # at which requests were due
    requests: int  # that were answered
    late: int  # of these, later than the bound; lone ones without their wait for another
    outcome: Literal["met", "missed"]
    unanswered: int  # issued, and not answered before the worker gave up
    served_per_s: float
    elapsed_s: float
    times: LoadTimes | None = None  # of the requests that were answered, where none is pending
    mean_batch: float = 1.0  # requests that were served by one call
    checked: int = 0  # answers that were kept: "SET/NUMBER/OUTPUT" in the file, by the number of the set of inputs
    without_answer: str = ""  # what reading one of them raised
    pending: int = 0  # of those unanswered: every call returned, but the worker gave up before their turn
    bytes: int = 0  # of the stamps that follow, in the order of STAMPS; each has one float64 for every request
    late_first_tokens: int = 0  # of these requests, those whose first token came later than its bound

    @property
    def most_late(self) -> int:
        """By the bound that more of them missed: each bound holds for a share of the requests."""
        return max(self.late, self.late_first_tokens)

    @property
    def missed_bound(self) -> LimitedBy:
        """The one that more of them missed."""
        return "first_token" if self.late_first_tokens > self.late else "bound"

    def require_consistent(self) -> None:
        """Raise msgspec.ValidationError unless there are all stamps of each request, or none of any."""
        requests, rest = divmod(self.bytes, BYTES_OF_STAMPS)
        too_few = 0 < self.bytes < BYTES_OF_STAMPS * (self.requests + self.unanswered)
        if rest or requests < 0 or too_few or self.bytes > MOST_RAW_BYTES:
            raise msgspec.ValidationError(f"{self.bytes} bytes of stamps for {self.requests} requests")


class OfferLoad(Ask[LoadTrial], frozen=True, tag="offer_load"):
    """Issue requests when they are due, whether or not those before are answered, and serve them."""

    served_by: ClassVar[str] = "fairlap.scenarios.load.serving:serve"
    has_own_length: ClassVar[bool] = True

    kind: TrialKind
    requests: int  # at most
    bound_s: float | None  # of whole answers
    percentile: float
    seed: int  # draws the times and items of the requests, new items, and the requests whose answers are kept
    path: str  # a safetensors file for these answers
    rate_per_s: float | None = None  # None: all requests are due at once
    at_random: bool = True  # Poisson arrivals; else at equal distances
    ends_early: bool = False  # as soon as it is decided whether the bound is met
    fewest: int = 0  # requests before that
    workers: int = 1
    largest_batch: int = 1
    longest_wait_s: float = 0.0
    items: Literal["pool", "one", "unique"] = "pool"
    give_up_s: float = 60.0  # after the last arrival
    stamps: bool = False  # send those of every request after the reply
    first_token_s: float | None = None  # the bound of the first token, from when its request was due

    @property
    def text(self) -> str:
        return "load"

    def most_raw_bytes(self, after_s: float) -> int:
        return min(MOST_RAW_BYTES, BYTES_OF_STAMPS * self.requests)


class LoadFound(msgspec.Struct, frozen=True):
    """What one process showed: all of its trials, and the largest rate that met the bound."""

    trials: tuple[LoadTrial, ...] = ()
    largest_rate_per_s: float | None = None
    limited_by: LimitedBy = ""
    loadgen: LoadGenResult | None = None  # of a scenario of LoadGen; else of the server scenario below the largest rate
    loadgen_absent: str = ""  # why it did not run

    def of_kind(self, kind: TrialKind) -> tuple[LoadTrial, ...]:
        return tuple(trial for trial in self.trials if trial.kind == kind)

    @property
    def capacity_per_s(self) -> float | None:
        """What it serves when requests are always waiting."""
        return next((trial.served_per_s for trial in self.of_kind("capacity")), None)

    @property
    def at_largest_rate(self) -> LoadTrial | None:
        """The last of those at which this rate was confirmed."""
        return next(reversed(self.of_kind("at_largest_rate")), None)

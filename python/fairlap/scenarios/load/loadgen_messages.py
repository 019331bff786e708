"""The messages about a run of LoadGen, MLPerf's load generator. They are the domain types, as the worker sends them.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar, Literal

from msgspec import field

from fairlap.errors import FairlapError, InvalidRequest, NotAvailable
from fairlap.request.fields.load import PERCENTILES_OF_MLPERF, Scenario
from fairlap.scenarios.asking import Ask, Reply

Unmet = Literal["bound", "first_token", "per_token", "duration", "queries", "early_stopping", "errors", "clock"]

WHY_INVALID: dict[Unmet, str] = {
    "bound": "the latency at the percentile is above the bound",
    "first_token": "the first token at the percentile came later than its bound (TTFT)",
    "per_token": "the time per token at the percentile is above its bound (TPOT)",
    "duration": "the run ended before the least duration",
    "queries": "fewer queries ran than the least count",
    "early_stopping": "too few queries ran for a statement at 99 % confidence about this percentile",
    "errors": "LoadGen logged errors",
    "clock": "the system's clock, which LoadGen reads, was set during the run",
}


BOUNDS: frozenset[Unmet] = frozenset({"bound", "first_token", "per_token"})
"""Of latencies, which a contestant misses; the others are rules of a run."""

_FEWEST_TOKENS = 2

BY_THE_PATH = ", as with a contestant that answers at once"
"""What rows add where it was not for the contestant that the bound was missed."""


class LoadGenFailed(FairlapError, RuntimeError):
    """LoadGen did not run to its end, or what it wrote cannot be read."""

    code = "E_LOADGEN"


class DroppedRequests(FairlapError, RuntimeError):
    """The contestant did not answer samples that LoadGen issued."""

    code = "E_DROPPED_REQUESTS"


class LoadGenResult(Reply, frozen=True, tag="loadgen_result"):
    """What LoadGen found, read from its own logs.

    Latencies are of samples, in multi-stream of queries, and count from when LoadGen had scheduled them. Of a run for
    accuracy there are no times.
    """

    scenario: Scenario
    accuracy: bool
    version: str
    valid: bool
    why_invalid: tuple[Unmet, ...] = ()
    figure: float | None = None  # a latency at the percentile; server: the completed rate; offline: samples per second
    unit: Literal["s", "1/s"] = "s"
    percentile: float | None = None
    early_stopping_s: float | None = (
        None  # the latency at the percentile with 99 % confidence; MLPerf's official figure
    )
    queries: int = 0
    samples: int = 0
    late_queries: int | None = None  # server: later than the bound
    scheduled_per_s: float | None = None  # server
    min_s: float | None = None
    mean_s: float | None = None
    max_s: float | None = None
    latencies_s: dict[str, float] = field(default_factory=dict)  # by percentile: "50", "90", "95", "97", "99", "99.9"
    first_token_s: dict[str, float] = field(default_factory=dict)  # TTFT by percentile, where tokens were counted
    per_token_s: dict[str, float] = field(default_factory=dict)  # TPOT, of the tokens after the first
    tokens_per_s: float | None = None
    largest_group: int = 1  # of samples that were served together
    attempts: int = 1  # a run that proves too short is repeated with more queries
    errors: tuple[str, ...] = ()
    early_stopping: str = ""  # in LoadGen's words
    path_misses_bound: bool = False  # server: the way to the contestant does, with one that answers at once


class LoadGenRun(Ask[LoadGenResult], frozen=True, tag="loadgen_run"):
    """Run LoadGen once. It ends VALID only after both the least duration and the least number of queries."""

    served_by: ClassVar[str] = "fairlap.scenarios.load.serving:run_loadgen"
    has_own_length: ClassVar[bool] = True

    scenario: Scenario
    logs: str  # an existing folder, where LoadGen's own logs go
    accuracy: bool = False  # every item once, and all answers in the log; nothing is timed
    least_s: float = 2.0
    least_queries: int | None = (
        None  # offline: samples. None: as few as early stopping accepts, offline every item once
    )
    rate_per_s: float | None = None  # server: of the arrivals
    bound_s: float | None = None  # server: of the latency at the percentile
    first_token_s: float | None = None  # server: of the first token instead, and of tokens after it
    per_token_s: float | None = None
    percentile: float | None = None  # None: MLPerf's own
    samples_per_query: int = 8  # multi-stream
    expected_latency_s: float | None = None  # of a call of the largest group; None: it is measured before
    seed: int = 0
    logged_answers: int = 0  # about so many, drawn at random, go into the log while it is timed, as in audit TEST01
    give_up_s: float = 30.0  # without an answer while some are missing
    workers: int = 1  # threads that serve samples
    largest_batch: int = 1  # of samples that one call may serve
    longest_wait_s: float = 0.0  # server: of a sample for others to join it

    @property
    def text(self) -> str:
        return "loadgen"

    @property
    def judges_tokens(self) -> bool:
        return self.bound_s is None and self.first_token_s is not None

    @property
    def judged_percentile(self) -> float:
        return PERCENTILES_OF_MLPERF[self.scenario] if self.percentile is None else self.percentile


def counts_tokens(request: LoadGenRun, tokens: int) -> bool:
    """Whether a run of answers with so many tokens has LoadGen's token metrics, by which a server run is judged then.

    LoadGen takes the time per token from the first to the last, so there have to be two.
    """
    if request.accuracy or request.scenario == "multi-stream" or tokens < _FEWEST_TOKENS:
        return False
    return request.scenario != "server" or request.judges_tokens


def require_loadgen() -> None:
    if find_spec("mlperf_loadgen") is None:
        raise NotAvailable("MLPerf's load generator needs mlcommons-loadgen: pip install 'fairlap[load]'")


def require_run(request: LoadGenRun, items: int) -> None:
    """Raise InvalidRequest for what LoadGen would only log as an error, and then run with other settings."""
    if items < 1:
        raise InvalidRequest(f"items must be at least 1 (got {items})")
    if request.scenario == "server" and not (request.rate_per_s and request.rate_per_s > 0):
        raise InvalidRequest(f"the scenario server needs a rate above 0 (got {request.rate_per_s})")
    bound_s = request.first_token_s if request.judges_tokens else request.bound_s
    if request.scenario == "server" and not (bound_s and bound_s > 0):
        raise InvalidRequest(f"the scenario server needs a latency bound above 0 (got {bound_s})")
    if not 0 < request.judged_percentile < 1:
        raise InvalidRequest(f"percentile must be between 0 and 1, exclusive (got {request.percentile})")
    if request.samples_per_query < 1:
        raise InvalidRequest(f"samples_per_query must be at least 1 (got {request.samples_per_query})")

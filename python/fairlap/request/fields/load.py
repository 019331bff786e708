"""What a race of load asks: the largest rate of requests that a contestant serves under a bound on their latency."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import field

from fairlap.errors import InvalidRequest
from fairlap.request.fields.traffic import E_LOAD as E_LOAD
from fairlap.request.fields.traffic import Traffic, traffic_of
from fairlap.request.units import Seconds, require_within_a_day

MOST_WORKERS = 256
LARGEST_BATCH = 1024
TRIAL_S = 2.0
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}

Scenario = Literal["single-stream", "multi-stream", "server", "offline"]
"""How queries arrive: one sample after another; several at once, query after query; at random; all at the start."""

PERCENTILES_OF_MLPERF: dict[Scenario, float] = {
    "single-stream": 0.9,
    "multi-stream": 0.99,
    "server": 0.99,
    "offline": 0.99,
}
"""Offline judges none."""


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class LoadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With this table, the race is one of load: `fairlap load`.

    Give one bound on the whole answer, one on its first token, or both; or a scenario of LoadGen.
    """

    p50: Annotated[Seconds | None, _about("Half of the requests are answered within this duration.")] = None
    p90: Annotated[Seconds | None, _about("Nine of ten requests are answered within this duration.")] = None
    p99: Annotated[Seconds | None, _about("Ninety-nine of a hundred requests are answered within this duration.")] = (
        None
    )
    first_token: Annotated[
        Seconds | None,
        _about(
            "Of a model that generates: the first token of as many requests comes within this duration; of ninety-nine "
            "of a hundred where no other bound is given."
        ),
    ] = None
    workers: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MOST_WORKERS)],
        _about("Threads that serve requests; 1 by default."),
    ] = 1
    largest_batch: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=LARGEST_BATCH)],
        _about("Serve up to so many waiting requests in one call; 1 by default: each request alone."),
    ] = 1
    longest_wait: Annotated[
        Seconds | None,
        _about("With largest_batch: wait so long for a batch to fill; by default it takes what is waiting."),
    ] = None
    trial: Annotated[Seconds, _about("The longest time of one trial of a rate; 2 s by default.")] = field(
        default_factory=lambda: Seconds(TRIAL_S)
    )
    scenario: Annotated[
        Scenario | None,
        _about(
            "Run MLPerf's LoadGen in this scenario instead of the search; with server and a bound, after it, in every "
            "process."
        ),
    ] = None
    users: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        _about("Find how many instances serve so many users, and what they cost at `price`."),
    ] = None
    think: Annotated[Seconds | None, _about("How long users think on average before they ask again.")] = None
    logs: Annotated[Path | None, _about("A folder for the logs of LoadGen, one folder for each process.")] = None


class Load(msgspec.Struct, frozen=True):
    """Of a work: how its requests are served, and the bounds that their latency has to meet."""

    percentile: float  # 0.99
    bound_s: float | None  # of the whole answer
    workers: int = 1
    largest_batch: int = 1
    longest_wait_s: float = 0.0
    trial_s: float = TRIAL_S
    scenario: Scenario | None = None
    logs: str = ""  # a folder for LoadGen's own logs
    first_token_s: float | None = None  # the bound of the first token, from when its request was due
    traffic: Traffic | None = None

    @property
    def identity(self) -> Load:
        """What is asked for, without how long it is measured, where logs go and what follows from its figures."""
        return msgspec.structs.replace(self, trial_s=TRIAL_S, logs="", traffic=None)

    @property
    def searches(self) -> bool:
        """Whether the largest rate is searched for; otherwise LoadGen's figure is what contestants are ranked by."""
        return self.scenario in (None, "server")

    @property
    def least_bound_s(self) -> float:
        return min(seconds for _, seconds in self.bounds)

    @property
    def bounds(self) -> list[tuple[str, float]]:
        """Each with its text: ``p99 within 20 ms``, ``first token p99 within 50 ms``."""
        percentile = f"p{100 * self.percentile:g}"
        given = ((percentile, self.bound_s), (f"first token {percentile}", self.first_token_s))
        return [(f"{of} within {duration_text(bound_s)}", bound_s) for of, bound_s in given if bound_s is not None]

    @property
    def bound_text(self) -> str:
        return ", ".join(text for text, _ in self.bounds)

    @property
    def text(self) -> str:
        workers = f", {self.workers} workers" if self.workers > 1 else ""
        wait = f" after {duration_text(self.longest_wait_s)}" if self.longest_wait_s else ""
        batches = f", batches up to {self.largest_batch}{wait}" if self.largest_batch > 1 else ""
        scenario = "" if self.scenario is None else f"LoadGen {self.scenario}"
        bound = self.bound_text if self.searches else ""
        return f"{', '.join(filter(None, (bound, scenario)))}{workers}{batches}"


_IN_MICROSECONDS_S = 1e-4


def duration_text(seconds: float) -> str:
    """Exactly, since it is part of a work's name: 2 s, 20 ms, 0.5 ms, 1 µs."""
    if 0 < seconds < _IN_MICROSECONDS_S:
        return f"{1e6 * seconds:.12g} µs"
    return f"{seconds:.12g} s" if seconds >= 1 else f"{1e3 * seconds:.12g} ms"


def load_of(request: LoadRequest) -> Load:
    given = {name: getattr(request, name) for name in PERCENTILES if getattr(request, name) is not None}
    if request.scenario not in (None, "server"):
        return _of_scenario(request, request.scenario, given)
    if len(given) > 1 or (not given and request.first_token is None):
        got = " and ".join(f"--{name}" for name in given) or "none"
        raise InvalidRequest(
            f"give one bound on the latency, such as --p99 20ms, or --first-token 50ms (got {got})", code=E_LOAD
        )
    if request.scenario == "server" and not given:
        raise InvalidRequest("--scenario server judges whole answers; give a bound such as --p99 3s too", code=E_LOAD)
    if request.longest_wait is not None and request.largest_batch == 1:
        raise InvalidRequest("--longest-wait is for --largest-batch", code=E_LOAD)
    if not given:
        return _load(request, PERCENTILES["p99"], None)
    [(name, bound)] = given.items()
    return _load(request, PERCENTILES[name], float(bound))


def _of_scenario(request: LoadRequest, scenario: Scenario, given: Mapping[str, Seconds]) -> Load:
    bounds = [f"--{name}" for name in given] + ([] if request.first_token is None else ["--first-token"])
    if bounds:
        text = f"{min(bounds)} bounds the search; LoadGen's scenario {scenario} has none"
        raise InvalidRequest(text, code=E_LOAD)
    if request.users is not None:
        raise InvalidRequest(f"--users needs the search; LoadGen's scenario {scenario} has none", code=E_LOAD)
    return _load(request, PERCENTILES_OF_MLPERF[scenario], None)


def _load(request: LoadRequest, percentile: float, bound_s: float | None) -> Load:
    for name in ("p50", "p90", "p99", "first_token", "longest_wait", "trial"):
        require_within_a_day(f"--{name.replace('_', '-')}", getattr(request, name))
    return Load(
        percentile,
        bound_s,
        request.workers,
        request.largest_batch,
        0.0 if request.longest_wait is None else float(request.longest_wait),
        float(request.trial),
        request.scenario,
        "" if request.logs is None else str(request.logs.absolute()),
        None if request.first_token is None else float(request.first_token),
        traffic_of(request.users, request.think),
    )

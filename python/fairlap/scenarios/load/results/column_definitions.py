"""The columns of serving load."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from fairlap.results.column_definitions.about import Gauge, ScenarioColumns, about
from fairlap.results.column_definitions.estimate import Estimate

_load = partial(about, group="load")


class LatencyAtRate(msgspec.Struct, frozen=True):
    """Of one trial, from when requests were due; at rate 0 of requests that came one at a time."""

    block: int  # of the process that served them
    rate_per_s: float
    p50_ns: float
    p90_ns: float
    p99_ns: float
    requests: int
    first_token_p99_ns: float | None = None


class LoadRow(ScenarioColumns, frozen=True, kw_only=True):
    load: Annotated[
        str,
        _load(
            "The bounds on the latency of requests and of their first token, and how they were served; empty without "
            "load."
        ),
    ]
    largest_rate_per_s: Annotated[
        Estimate | None,
        _load(
            "The largest rate of random arrivals that was found to meet the bound.",
            gauge=Gauge("largest_rate_per_second", "", "Largest rate within the bound."),
            across="",
        ),
    ]
    largest_rate_limited_by: Annotated[
        str | None,
        _load(
            "What ended the search: bound, first token (its bound), capacity (the bound holds up to it), lone request "
            "or no rate (nothing meets it), budget; where processes with a rate differ, each with their number."
        ),
    ]
    capacity_per_s: Annotated[Estimate | None, _load("Requests in a second when some are always waiting.")]
    latency_at_largest_rate_p50_ns: Annotated[
        Estimate | None, _load("Median latency of a request at this rate, from when it was due.")
    ]
    latency_at_largest_rate_p90_ns: Annotated[Estimate | None, _load("90th percentile of this latency.")]
    latency_at_largest_rate_p99_ns: Annotated[Estimate | None, _load("99th percentile of this latency.")]
    issue_lateness_p99_ns: Annotated[
        Estimate | None, _load("How late requests were issued at this rate, the 99th percentile; it counts as latency.")
    ]
    mean_batch_at_largest_rate: Annotated[float | None, _load("Requests that one call served there.")]
    first_token_at_largest_rate_p50_ns: Annotated[
        Estimate | None, _load("Median time to the first token there, from when the request was due.")
    ]
    first_token_at_largest_rate_p99_ns: Annotated[Estimate | None, _load("99th percentile of this time.")]
    output_token_at_largest_rate_p50_ns: Annotated[
        Estimate | None, _load("Mean time of a request's tokens after the first, the median request.")
    ]
    output_token_at_largest_rate_p99_ns: Annotated[Estimate | None, _load("99th percentile of this time.")]
    tokens_at_largest_rate_per_s: Annotated[
        Estimate | None, _load("Tokens in a second: the largest rate times those of a request.")
    ]
    first_request_s: Annotated[Estimate | None, _load("The first call of a fresh process.")]
    knee_rate_per_s: Annotated[
        float | None, _load("The lowest rate tried at which p99 is more than twice that of lone requests.")
    ]
    users_per_instance: Annotated[
        Estimate | None,
        _load(
            "Users that one instance serves: its largest rate times the sum of think and mean response time.",
            unit="users",
        ),
    ]
    traffic_per_s: Annotated[Estimate | None, _load("How often the users of --users ask, of all instances.")]
    instances: Annotated[
        Estimate | None,
        _load("Instances that serve these users; its interval is of whole instances too.", unit="instances"),
    ]
    cost_of_instances_per_hour: Annotated[
        Estimate | None, _load("Money for these instances in an hour, at the given price of one.", is_money=True)
    ]
    loadgen: Annotated[
        str | None,
        _load("What MLPerf's LoadGen says, VALID or INVALID with its reasons, and the scenario that it ran."),
    ]
    loadgen_latency_ns: Annotated[
        Estimate | None, _load("LoadGen's figure in single-stream and multi-stream: the latency it judges.")
    ]
    loadgen_rate_per_s: Annotated[
        Estimate | None, _load("LoadGen's figure in server, completed requests; in offline, samples.")
    ]
    latency_by_rate: Annotated[
        list[LatencyAtRate], _load("Latency by rate, from trials of a fixed length; at rate 0 lone requests.")
    ]

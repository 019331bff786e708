"""Columns of the traffic that is to be served: how many users an instance serves, how many instances, what they cost.

An instance serves requests at its largest rate under the bound, where an answer takes so long on average. That many
users, who think in between, ask at this rate: rate times (think time and response time), the interactive response time
law of queueing theory. Instances are whole, of equal speed, and each user stays with one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlap.request.fields.traffic import Traffic
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import Cell, estimate, times
from fairlap.results.prices import Price
from fairlap.scenarios.process_result import ProcessResult

INSTANCES, COST = "instances", "cost_of_instances_per_hour"
NO_TRAFFIC = "no traffic was given; --users is"
_COLUMNS = ("users_per_instance", "traffic_per_s", INSTANCES, COST)
_NO_PRICE = "no price was given"


def without_instances(why: str) -> dict[str, Cell]:
    return {name: Cell(None, why) for name in _COLUMNS}


def instances_of(
    traffic: Traffic,
    processes: Sequence[ProcessResult],
    rate_per_s: Callable[[ProcessResult], float | None],
    response_s: Callable[[ProcessResult], float | None],
    price: Price | None,
    why: str,
) -> dict[str, Cell]:
    """Compute them from the processes that found a rate; ``response_s`` is the mean of answers at it."""

    def users(process: ProcessResult) -> float | None:
        rate, response = rate_per_s(process), response_s(process)
        return None if rate is None or response is None else traffic.users_per_instance(rate, response)

    def requests(process: ProcessResult) -> float | None:
        response = response_s(process)
        return None if response is None else traffic.requests_per_s(response)

    of_instance = None if why else estimate(processes, users)
    if of_instance is None:
        return without_instances(why or "the response time at the largest rate is not known")
    instances = _whole(traffic, of_instance)
    return {
        "users_per_instance": Cell(of_instance),
        "traffic_per_s": Cell(estimate(processes, requests)),
        INSTANCES: Cell(instances),
        **cost_of(instances, price),
    }


def cost_of(instances: Estimate | None, price: Price | None) -> dict[str, Cell]:
    if price is None or instances is None:
        return {COST: Cell(None, _NO_PRICE if price is None else NO_TRAFFIC)}
    return {COST: Cell(times(instances, price.per_hour)), "currency": Cell(price.currency)}


def _whole(traffic: Traffic, of_instance: Estimate) -> Estimate:
    low, high = of_instance.high, of_instance.low  # more users of an instance are fewer instances
    return Estimate(
        float(traffic.instances(of_instance.value)),
        None if low is None else float(traffic.instances(low)),
        None if high is None else float(traffic.instances(high)),
    )

"""How many instances serve so many users, and their price: by queueing theory, and in rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from fairlap.errors import InvalidRequest
from fairlap.render.plan_command import command_of
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.load import LoadRequest, load_of
from fairlap.request.fields.traffic import Traffic
from fairlap.request.names import Contestants
from fairlap.request.units import Seconds
from fairlap.results.prices import Price
from fairlap.results.results import Results, results_of
from fairlap.results.row import Row
from fairlap.scenarios.load.load_messages import LoadFound
from fairlap.scenarios.streams.asked import streams_asked
from hypothesis import given
from hypothesis import strategies as st
from load_results import RATES, found, raced
from stream_races import file_of_prompts
from thinking_users import repairman_per_s

USERS = 18_000


@pytest.mark.parametrize(("bound", "think_s"), [(10.0, 5.0), (20.0, 5.0), (20.0, 1.0), (6.0, 20.0)])
def test_users_of_an_instance_ask_at_its_largest_rate_by_the_theory_of_a_closed_queue(
    bound: float, think_s: float
) -> None:
    """An M/M/1 server of 10 ms, whose 99th percentile is under so many times that; its users are M/M/1//N."""
    service_s = 0.01
    rate_per_s = 1 / service_s - math.log(100) / (bound * service_s)  # the response time is exponential
    response_s = 1 / (1 / service_s - rate_per_s)
    users = Traffic(1, think_s).users_per_instance(rate_per_s, response_s)
    closed_per_s = repairman_per_s(round(users), think_s, service_s)
    assert closed_per_s == pytest.approx(rate_per_s, rel=0.02)
    closed_response_s = round(users) / closed_per_s - think_s  # the interactive response time law
    assert closed_response_s == pytest.approx(response_s, rel=0.2)
    assert Traffic(round(users), think_s).requests_per_s(response_s) == pytest.approx(rate_per_s, rel=0.01)


@given(st.integers(1, 10**7), st.floats(0.01, 1e5), st.floats(0, 3600), st.floats(1e-4, 100))
def test_instances_are_as_few_as_serve_all_users(users: int, rate: float, think_s: float, response_s: float) -> None:
    traffic = Traffic(users, think_s)
    each = traffic.users_per_instance(rate, response_s)
    instances = traffic.instances(each)
    assert instances * each >= users * (1 - 1e-6)
    assert instances == 1 or (instances - 1) * each < users
    needed = traffic.requests_per_s(response_s) / rate
    assert instances == max(math.ceil(needed - 1e-6), 1) or abs(needed - round(needed)) < 1e-5


def steady(name: str, block: int) -> LoadFound:
    return found(RATES[name] * (1 + 0.002 * (block % 4)))


def unsteady(name: str, block: int) -> LoadFound:
    return found(RATES[name] * (1 + 0.4 * (block % 4)))


def rows_of(load: Any, price: Price | None = None, **more: Any) -> dict[str, Row]:
    request = LoadRequest(p99=Seconds("20ms"), **{"users": USERS, "think": Seconds("20s"), **more})
    run = raced(load, request).run
    return {row.contestant: row for row in results_of(run, "r", price=price).rows}


def test_a_row_has_the_instances_and_their_price() -> None:
    rows = rows_of(steady, Price(1.5, "EUR"))
    response_s = 0.6 * 0.018  # the mean of answers, which load_results makes up
    for name, instances in (("torch", 3), ("jax", 2)):
        row = rows[name]
        assert row.users_per_instance is not None
        assert row.users_per_instance.value == pytest.approx(RATES[name] * (20 + response_s), rel=0.01)
        assert row.instances is not None
        assert (row.instances.value, row.instances.low, row.instances.high) == (instances,) * 3
        assert row.cost_of_instances_per_hour is not None
        assert row.cost_of_instances_per_hour.value == pytest.approx(1.5 * instances)
        assert row.currency == "EUR"
        assert row.traffic_per_s is not None
        assert row.traffic_per_s.value == pytest.approx(USERS / (20 + response_s))


def test_the_interval_is_of_whole_instances() -> None:
    row = rows_of(unsteady, Price(2.0))["torch"]
    found, users = row.instances, row.users_per_instance
    assert found is not None
    assert users is not None
    assert found.low is not None
    assert found.high is not None
    assert users.low is not None
    assert users.high is not None
    assert (found.low, found.high) == (math.ceil(USERS / users.high), math.ceil(USERS / users.low))
    assert found.low < found.high
    cost = row.cost_of_instances_per_hour
    assert cost is not None
    assert (cost.low, cost.high) == (2 * found.low, 2 * found.high)


def test_what_is_not_known_is_absent_with_the_reason() -> None:
    row = rows_of(steady)["torch"]
    assert row.cost_of_instances_per_hour is None
    assert "price" in row.absent["cost_of_instances_per_hour"]
    row = rows_of(steady, users=None, think=None)["torch"]
    assert row.instances is None
    assert "--users" in row.absent["instances"]


def test_the_traffic_is_shown_and_is_part_of_the_command_but_not_of_the_work() -> None:
    def of(**more: Any) -> Results:
        return raced(steady, LoadRequest(p99=Seconds("20ms"), **more))

    with_traffic, without = of(users=USERS, think=Seconds("20s")), of()
    assert "3 instances" in text_of(with_traffic)
    assert "instance" not in text_of(without)
    [first], [second] = with_traffic.run.plan.works, without.run.plan.works
    assert first.id == second.id
    assert f"--users {USERS} --think 20s" in str(command_of(with_traffic.run.plan))


@pytest.mark.parametrize(
    "more",
    [
        {"think": Seconds("20s")},
        {"users": 10**10},
        {"users": 5, "think": Seconds("25h")},
        {"users": 5, "scenario": "offline", "p99": None},
    ],
)
def test_traffic_that_cannot_be_served_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as raised:
        load_of(LoadRequest(**{"p99": Seconds("20ms"), **more}))
    assert raised.value.code in ("E_LOAD", "E_REQUEST")


@pytest.mark.parametrize("more", [{"rate": 5.0}, {"concurrency": 4}])
def test_traffic_of_servers_that_stream_needs_the_search(more: dict[str, Any], tmp_path: Path) -> None:
    contestants = Contestants("http://127.0.0.1:8000/v1:model=m")
    prompts = file_of_prompts(tmp_path)
    asked = streams_asked(prompts, contestants, tokens=4, first_token=0.2, users=500, think=20.0)
    assert asked.load.traffic == Traffic(500, 20.0)
    assert asked.load.searches
    with pytest.raises(InvalidRequest):
        streams_asked(prompts, contestants, tokens=4, first_token=0.2, users=500, think=20.0, **more)

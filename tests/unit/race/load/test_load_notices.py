"""What a process is warned of after its search."""

from __future__ import annotations

from fairlap.race.load.load_run import notices
from fairlap.request.load import Load
from fairlap.scenarios.load.load_messages import LoadFound, LoadTimes, LoadTrial

BOUND = Load(0.99, 0.02)


def found(lateness_ns: float) -> LoadFound:
    times = LoadTimes(1e6, 2e6, 3e6, 1e6, lateness_ns)
    trial = LoadTrial("at_largest_rate", 500.0, 1000, 3, "met", 0, 500.0, 2.0, times)
    return LoadFound((trial,), 500.0, "bound")


def codes(of: LoadFound, load: Load = BOUND) -> list[str]:
    return [notice.code for notice in notices(of, load)]


def test_a_search_that_the_bound_ended_on_a_quiet_machine_has_no_warning() -> None:
    assert codes(found(1e5)) == []


def test_requests_that_are_issued_late_by_a_tenth_of_the_bound_are_named() -> None:
    assert codes(found(2.1e6)) == ["W_LATE_REQUESTS"]
    assert codes(found(1.9e6)) == []


def test_the_shorter_of_two_bounds_says_what_is_late() -> None:
    assert codes(found(1.9e6), Load(0.99, 0.02, first_token_s=0.005)) == ["W_LATE_REQUESTS"]
    assert codes(found(1.9e6), Load(0.99, None, first_token_s=0.02)) == []


def test_a_search_without_a_rate_has_no_warning() -> None:
    assert codes(LoadFound((), None, "lone_request")) == []

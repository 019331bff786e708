"""Every sample that is issued is completed exactly once, and early stopping needs as many as LoadGen asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from fairlap.scenarios.load.early_stopping import CONFIDENCE, fewest_queries
from fairlap.scenarios.load.loadgen_messages import DroppedRequests
from fairlap.scenarios.load.system_under_test import Answer, Issue, SystemUnderTest
from scipy.stats import binom  # type: ignore[import-untyped,unused-ignore]
from sleeping_issue import answers, sleeping


class Completed:
    """Stands in for LoadGen."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.answers: dict[int, list[float]] = {}
        self._lock = threading.Lock()

    def __call__(self, ids: list[int], read: Callable[[], Sequence[Answer]]) -> None:
        with self._lock:
            self.ids += ids
        self.answers |= {each: answer.tolist() for each, answer in zip(ids, read(), strict=False)}

    def wait_for(self, count: int) -> None:
        until_s = time.monotonic() + 120
        while len(self.ids) < count and time.monotonic() < until_s:
            time.sleep(0.002)


@contextmanager
def started(issue: Issue, *, may_join: bool = False) -> Iterator[tuple[SystemUnderTest, Completed]]:
    completed = Completed()
    under_test = SystemUnderTest(issue, completed, may_join=may_join)
    yield under_test, completed
    under_test.close(5.0)


def test_a_query_is_served_in_groups_of_at_most_the_largest_batch() -> None:
    groups: list[int] = []
    with started(sleeping(0, largest_batch=4, before=lambda items: groups.append(len(items)))) as (
        under_test,
        completed,
    ):
        under_test.issue(range(10), range(10))
        completed.wait_for(10)
    assert groups == [4, 4, 2]
    assert under_test.largest_group == 4
    assert completed.ids == list(range(10))
    assert completed.answers[7] == [7, 14]


def test_single_samples_join_a_group_until_it_is_full() -> None:
    groups: list[list[int]] = []
    issue = sleeping(0, largest_batch=3, longest_wait_s=5, before=lambda items: groups.append(list(items)))
    with started(issue, may_join=True) as (under_test, completed):
        for number in range(6):
            under_test.issue([number], [number])
        completed.wait_for(6)
    assert groups == [[0, 1, 2], [3, 4, 5]]


def test_a_sample_waits_no_longer_than_the_longest_wait_for_others() -> None:
    with started(sleeping(0, largest_batch=3, longest_wait_s=0.02), may_join=True) as (under_test, completed):
        under_test.issue([0], [0])
        completed.wait_for(1)
    assert completed.ids == [0]


def test_samples_of_two_queries_are_not_served_together_unless_they_may_join() -> None:
    groups: list[int] = []
    issue = sleeping(0.01, largest_batch=4, before=lambda items: groups.append(len(items)))
    with started(issue) as (under_test, completed):
        for number in range(3):
            under_test.issue([number], [number])
        completed.wait_for(3)
    assert groups == [1, 1, 1]


def test_an_exception_completes_what_is_outstanding_and_what_is_still_issued() -> None:
    def failing(items: Sequence[int]) -> None:
        if 3 in items:
            raise ValueError("no kernel for item 3")

    with started(sleeping(0.001, threads=2, before=failing)) as (under_test, completed):
        under_test.issue(range(50), range(50))
        completed.wait_for(50)
        under_test.issue([50, 51], [0, 1])
    assert sorted(completed.ids) == list(range(52))
    assert isinstance(under_test.failure, ValueError)
    assert 50 not in completed.answers


def test_a_call_that_hangs_is_counted_with_what_waits_for_it_and_is_not_completed_twice() -> None:
    released = threading.Event()

    def hanging(items: Sequence[int]) -> None:
        if 2 in items:
            released.wait(120)

    with started(sleeping(0, before=hanging)) as (under_test, completed):
        under_test.issue(range(10), range(10))
        completed.wait_for(2)
        time.sleep(0.05)
        under_test.fail_if_stalled(60)
        assert under_test.failure is None
        under_test.fail_if_stalled(0.01)
        assert sorted(completed.ids) == list(range(10))
        released.set()
    assert sorted(completed.ids) == list(range(10))
    assert isinstance(under_test.failure, DroppedRequests)
    assert "8 of 10" in str(under_test.failure)


def test_nothing_outstanding_is_no_stall() -> None:
    with started(sleeping(0)) as (under_test, completed):
        time.sleep(0.05)
        under_test.fail_if_stalled(0.001)
        under_test.issue([0], [0])
        under_test.fail_if_stalled(5)
        completed.wait_for(1)
    assert under_test.failure is None


def test_missing_answers_are_counted() -> None:
    issue = sleeping(0, largest_batch=8)
    too_few = Issue(issue.serve, lambda items, count: answers(items, count - 3), 8)
    with started(too_few) as (under_test, completed):
        under_test.issue(range(8), range(8))
        completed.wait_for(8)
    assert completed.ids == list(range(8))
    assert isinstance(under_test.failure, DroppedRequests)
    assert "3 of 8" in str(under_test.failure)


def test_every_serving_thread_enters_its_context_before_it_serves() -> None:
    entered: list[int] = []
    served: list[bool] = []

    @contextmanager
    def in_thread() -> Iterator[None]:
        entered.append(threading.get_ident())
        yield

    issue = sleeping(
        0.001, threads=2, before=lambda _: served.append(threading.get_ident() in entered), in_thread=in_thread
    )
    with started(issue) as (under_test, completed):
        under_test.issue(range(20), range(20))
        completed.wait_for(20)
    assert len(set(entered)) == 2
    assert all(served)
    assert len(served) == 20


def test_a_thread_that_cannot_start_serving_fails_the_run() -> None:
    @contextmanager
    def in_thread() -> Iterator[None]:
        raise RuntimeError("no such mode")
        yield

    with started(sleeping(0, in_thread=in_thread)) as (under_test, completed):
        under_test.issue([0], [0])
        completed.wait_for(1)
    assert str(under_test.failure) == "no such mode"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_answers_are_contiguous(kind: type) -> None:
    issue = Issue([list], lambda items, count: [np.zeros((4, 4), kind)[:, 1]] * count)
    flags: list[bool] = []
    under_test = SystemUnderTest(
        issue, lambda ids, read: flags.extend(each.flags.c_contiguous for each in read()), may_join=False
    )
    under_test.issue([0], [0])
    under_test.close(5.0)
    assert flags == [True]


@pytest.mark.parametrize(
    ("percentile", "late", "queries"),
    [(0.9, 0, 44), (0.9, 1, 64), (0.99, 0, 459), (0.99, 1, 662)],
)
def test_the_counts_are_those_that_loadgen_itself_asks_for(percentile: float, late: int, queries: int) -> None:
    assert fewest_queries(percentile, late) == queries


@pytest.mark.parametrize("percentile", [0.5, 0.9, 0.97, 0.999])
@pytest.mark.parametrize("late", [0, 1, 2, 7])
def test_one_query_fewer_would_not_show_it_at_99_percent(percentile: float, late: int) -> None:
    found = fewest_queries(percentile, late)
    assert binom.cdf(late, found, 1 - percentile) <= 1 - CONFIDENCE < binom.cdf(late, found - 1, 1 - percentile)

"""What LoadGen calls the system under test: a contestant's threads, which serve a queue of samples.

LoadGen waits for every sample that it issued, for ever. So each sample is completed exactly once, whatever happens:
after a failure all that are outstanding are completed without an answer, and so are all that LoadGen still issues.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.scenarios.load.loadgen_messages import DroppedRequests

Serve = Callable[[Sequence[int]], Any]
"""Does the work on these items, at most as many as the largest batch, and returns when it is done."""

Answer = npt.NDArray[Any]
"""All outputs of one item, one after another."""


@dataclass
class FirstTokens:
    """Called by the thread that serves samples, when it has their first tokens."""

    heard: Callable[[], None] | None = None  # None: no run of LoadGen counts tokens

    def __call__(self) -> None:
        if self.heard is not None:
            self.heard()


@dataclass(frozen=True)
class Issue:
    """How a contestant serves samples.

    ``serve`` has one callable for each thread; their results are read before the same thread serves again.
    """

    serve: Sequence[Serve]
    answers: Callable[[Any, int], Sequence[Answer]]  # of what a call on so many items returned, one for each item
    largest_batch: int = 1
    longest_wait_s: float = 0.0  # of a sample for others to join it, when they arrive one by one
    in_thread: Callable[[], AbstractContextManager[Any]] = nullcontext  # what every serving thread enters first
    tokens: int = 0  # of each answer; 0 where it has none
    first_tokens: FirstTokens = field(default_factory=FirstTokens)


@dataclass(eq=False)
class _Group:
    """Samples that are served together."""

    ids: list[int]
    items: list[int]
    since_s: float
    is_completed: bool = field(default=False)


class SystemUnderTest:
    """``complete`` gives LoadGen the ids of completed samples, and how to get their answers; it must not raise.

    ``may_join`` lets samples of separate queries be served together. ``begin`` gives it the ids of samples whose first
    tokens are there.
    """

    def __init__(
        self,
        issue: Issue,
        complete: Callable[[list[int], Callable[[], Sequence[Answer]]], None],
        *,
        may_join: bool,
        begin: Callable[[list[int]], None] | None = None,
    ) -> None:
        self._issue, self._complete, self._begin = issue, complete, begin
        self._in_thread = threading.local()
        issue.first_tokens.heard = None if begin is None else self._first_token
        self._may_join = may_join and issue.largest_batch > 1
        self._queue: SimpleQueue[_Group | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._being_served: set[_Group] = set()
        self._outstanding = 0
        self._progress_s = time.monotonic()
        self.failure: BaseException | None = None
        self.issued = 0
        self.largest_group = 0
        self._threads = [threading.Thread(target=self._run, args=(serve,), daemon=True) for serve in issue.serve]
        for thread in self._threads:
            thread.start()

    def issue(self, ids: Sequence[int], items: Sequence[int]) -> None:
        """Issue the samples of one query, without raising or waiting, since LoadGen's own thread calls this."""
        now_s = time.monotonic()
        most = self._issue.largest_batch
        groups = [
            _Group(list(ids[first : first + most]), list(items[first : first + most]), now_s)
            for first in range(0, len(ids), most)
        ]
        with self._lock:
            if self._outstanding == 0:
                self._progress_s = now_s
            self.issued += len(ids)
            self._outstanding += len(ids)
            if self.failure is None:
                for group in groups:
                    self._queue.put(group)
                return
        for group in groups:
            self._finish(group, _nothing)

    def fail(self, error: BaseException) -> None:
        """Serve nothing more, and complete what is outstanding. The first failure is kept."""
        with self._lock:
            if self.failure is not None:
                return
            self.failure = error
            groups = list(self._being_served)
        waiting = _Group([], [], 0.0)
        while (queued := self._taken(0.0)) is not None:
            waiting.ids += queued.ids
        for group in (*groups, waiting):
            self._finish(group, _nothing)

    def fail_if_stalled(self, give_up_s: float) -> None:
        with self._lock:
            missing, issued = self._outstanding, self.issued
            stalled = missing > 0 and time.monotonic() - self._progress_s > give_up_s
        if stalled and self.failure is None:
            self.fail(
                DroppedRequests(
                    f"{missing} of {issued} requests were not answered; the last answer came {give_up_s:g} s ago"
                )
            )

    def close(self, wait_s: float) -> None:
        """End the threads. One that does not return from its call is left behind."""
        for _ in self._threads:
            self._queue.put(None)
        until_s = time.monotonic() + wait_s
        for thread in self._threads:
            thread.join(max(until_s - time.monotonic(), 0.0))

    def _run(self, serve: Serve) -> None:
        try:
            with self._issue.in_thread():
                while (group := self._queue.get()) is not None:
                    if self._may_join:
                        self._gather(group)
                    self._serve(serve, group)
        except BaseException as error:  # of in_thread: LoadGen must not wait for this thread
            self.fail(error)

    def _gather(self, group: _Group) -> None:
        """Let other single samples join, until the group is full or has waited long enough."""
        while len(group.ids) < self._issue.largest_batch:
            other = self._taken(group.since_s + self._issue.longest_wait_s - time.monotonic())
            if other is None:
                return
            group.ids += other.ids
            group.items += other.items

    def _taken(self, wait_s: float) -> _Group | None:
        try:
            group = self._queue.get(timeout=wait_s) if wait_s > 0 else self._queue.get_nowait()
        except Empty:
            return None
        if group is None:  # the sign to end, which is for a thread that has nothing to do
            self._queue.put(None)
        return group

    def _serve(self, serve: Serve, group: _Group) -> None:
        with self._lock:
            failed = self.failure is not None
            if not failed:
                self._being_served.add(group)
                self.largest_group = max(self.largest_group, len(group.ids))
        if failed:
            self._finish(group, _nothing)
            return
        self._in_thread.group = group
        try:
            result = serve(group.items)
        except BaseException as error:
            self.fail(error)
            return
        self._finish(group, lambda: self._answers(result, len(group.ids)))

    def _first_token(self) -> None:
        group: _Group | None = getattr(self._in_thread, "group", None)
        if group is not None and self._begin is not None:
            self._in_thread.group = None
            with self._lock:  # a sample that is completed meanwhile is LoadGen's no more
                if not group.is_completed:
                    self._begin(group.ids)

    def _answers(self, result: Any, count: int) -> Sequence[Answer]:
        """None for any of them, after an error; LoadGen's log then has empty answers, and the failure is raised."""
        try:
            answers = [np.ascontiguousarray(answer) for answer in self._issue.answers(result, count)]
            if len(answers) == count:
                return answers
            self.fail(DroppedRequests(f"{count - len(answers)} of {count} samples of a query have no answer"))
        except BaseException as error:
            self.fail(error)
        return ()

    def _finish(self, group: _Group, answers: Callable[[], Sequence[Answer]]) -> None:
        """Once: LoadGen frees a query when its last sample is completed."""
        with self._lock:
            if group.is_completed:
                return
            group.is_completed = True
            self._being_served.discard(group)
            self._outstanding -= len(group.ids)
            self._progress_s = time.monotonic()
        self._complete(group.ids, answers)


def _nothing() -> Sequence[Answer]:
    return ()

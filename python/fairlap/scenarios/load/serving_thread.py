"""One thread that serves requests: the contestant that it calls, and the calls that are bound for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from fairlap.frameworks.contract import Contestant
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from fairlap.scenarios.load.batched_calls import BatchedCalls, GroupResult
from fairlap.scenarios.load.item_pool import ItemPool

_WARM_UP_CALLS = 3

Call = Callable[[], Any]


class ServingThread:
    """Known items are bound once, new ones for each trial. ``ident`` is that of the thread which last served here."""

    def __init__(
        self, contestant: Contestant, work: Workload, pool: ItemPool, build: Callable[[Workload], Contestant]
    ) -> None:
        self.contestant = contestant
        self.ident: int | None = None
        self._work, self._pool, self._build = work, pool, build
        self._known: list[Call] = []
        self._batched: dict[int, BatchedCalls] = {}
        self._entered: list[AbstractContextManager[Any]] = []

    def sharing(self) -> ServingThread:
        """Another thread on the same contestant, also for batches."""
        other = ServingThread(self.contestant, self._work, self._pool, self._build)
        other._batched = self._batched
        return other

    def calls(self, items: Sequence[Arrays], *, of_pool: bool) -> list[Call]:
        """By item; those of the pool begin with the known ones."""
        if not of_pool:
            return [self.contestant.bind(item) for item in items]
        if not self._known:
            self._known = [self.contestant.bind(item) for item in self._pool.known]
        return [*self._known, *(self.contestant.bind(item) for item in items[len(self._known) :])]

    def batched(self, largest: int) -> BatchedCalls | None:
        if largest == 1:
            return None
        if largest not in self._batched:
            self._batched[largest] = BatchedCalls(self._work, largest, self._build)
        return self._batched[largest]

    def contestants(self, largest_batch: int) -> list[Contestant]:
        """Those that it calls: on single requests, and on groups of up to so many."""
        batched = self.batched(largest_batch)
        return [self.contestant, *([] if batched is None else batched.contestants)]

    def warm_up(self, calls: Sequence[Call]) -> None:
        """On items whose answers were given before; new ones stay new."""
        for call in (self._known or calls)[:_WARM_UP_CALLS]:
            result = call()
            if self.contestant.done is not None:
                self.contestant.done(result)

    def entering(self, call: Call) -> Call:
        """Enter what a framework keeps for a thread, in the call that the engine makes in each thread before the start.

        It is never left: leaving it elsewhere than in its thread, which has ended then, would change other threads.
        """
        in_thread = self.contestant.in_thread
        entered: list[bool] = []

        def entering() -> Any:
            if not entered:
                entered.append(True)
                self.ident = threading.get_ident()
                if in_thread is not None:
                    self._entered.append(in_thread())
                    self._entered[-1].__enter__()
            return call()

        return entering

    @property
    def done(self) -> Callable[[Any], Any] | None:
        done = self.contestant.done
        if done is None:
            return None

        def wait(result: Any) -> None:
            if isinstance(result, GroupResult):
                result.wait()
            else:
                done(result)

        return wait

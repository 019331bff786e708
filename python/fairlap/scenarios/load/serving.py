"""Serving requests in a worker: the engine issues them when they are due, and threads of this process answer them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import structs

from fairlap import verdict
from fairlap.errors import described
from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from fairlap.scenarios.held import Held
from fairlap.scenarios.load.batched_calls import BatchedCalls, GroupCall, GroupResult
from fairlap.scenarios.load.item_pool import ItemPool
from fairlap.scenarios.load.load_messages import STAMPS, LoadTimes, LoadTrial, OfferLoad
from fairlap.scenarios.load.loadgen_messages import LoadGenResult, LoadGenRun
from fairlap.scenarios.load.serving_thread import ServingThread
from fairlap.scenarios.load.tokens_of_requests import TokensOfRequests, tokens_of
from fairlap.scenarios.reading import deferred_type

if TYPE_CHECKING:
    from fairlap.engine.load import Decision, LoadResult

_KEPT = 8  # answers of a trial
_NEVER = -1  # of a decision
_EARLY = 100  # half of them are drawn from the first requests: a trial may end early


def serve(held: Held, request: OfferLoad) -> tuple[LoadTrial, list[memoryview]]:
    with held.phases.unreported():
        return _serving(held).serve(request)


def run_loadgen(held: Held, request: LoadGenRun) -> tuple[LoadGenResult, tuple[()]]:
    with held.phases.unreported():
        return _serving(held).run_loadgen(request), ()


def _serving(held: Held) -> Serving:
    held.require_unprofiled()
    return held.part(
        Serving, lambda: Serving(held.contestant, held.read_again()[0], held.sets, held.unseen, held.build)
    )


class Serving:
    """Of one contestant."""

    def __init__(
        self,
        contestant: Contestant,
        work: Workload,
        sets: Sequence[Arrays],
        unseen: Sequence[str],
        build: Callable[[Workload], Contestant],
    ) -> None:
        self._contestant, self._work, self._build = contestant, work, build
        self._pool = ItemPool(sets, unseen)
        self._threads: list[ServingThread] = []

    def serve(self, request: OfferLoad) -> tuple[LoadTrial, list[memoryview]]:
        """With the stamps of its requests, where they were asked for."""
        from fairlap.engine.load import Worker, run_load

        request = self._in_memory(request)
        items = self._items(request)
        rng = np.random.default_rng(request.seed)
        due_ns = _due_ns(request)
        asked = _asked(request, len(items), len(self._pool.known), len(due_ns), rng)
        threads, workers = self._serving(request.workers), []
        for thread in threads:
            calls = thread.calls(items, of_pool=request.items == "pool")
            thread.warm_up(calls)
            calls[int(asked[0])] = thread.entering(calls[int(asked[0])])
            batched = thread.batched(request.largest_batch)
            workers.append(Worker(calls, None if batched is None else batched.on(items), thread.done))
        kept = _Kept(threads, asked, threads[0].batched(request.largest_batch))
        drawn = _drawn(request, asked, len(self._pool.known), rng)
        result = run_load(
            due_ns,
            asked,
            workers,
            largest_batch=request.largest_batch,
            longest_wait_ns=1e9 * request.longest_wait_s,
            decision=_decision(request) if request.ends_early else None,
            give_up_ns=1e9 * request.give_up_s,
            kept=drawn,
            keep=kept.keep,
        )
        if result.interrupted:
            raise KeyboardInterrupt
        safetensors.write(Path(request.path), kept.outputs)
        stamps = [np.ascontiguousarray(getattr(result, name), "<f8") for name in STAMPS if request.stamps]
        tokens = self._tokens(request, result, threads)
        size = sum(each.nbytes for each in stamps)
        trial = trial_of(request, result, tokens, kept.checked, kept.without_answer, size)
        return trial, [each.data.cast("B") for each in stamps]

    def _in_memory(self, request: OfferLoad) -> OfferLoad:
        """Limit the requests to as many as leave their stamps, where the first token has a bound.

        That includes those of calls before the trial.
        """
        if request.first_token_s is None:
            return request
        if self._contestant.stamps is None:
            raise Unsupported("its adapter does not stamp tokens, so their first one can have no bound")
        return structs.replace(request, requests=min(request.requests, self._contestant.stamps.most_answers // 2))

    def _tokens(
        self, request: OfferLoad, result: LoadResult, threads: Sequence[ServingThread]
    ) -> TokensOfRequests | None:
        if self._contestant.stamps is None or not np.isfinite(result.completed_ns).any():
            return None
        contestants = [each for thread in threads for each in thread.contestants(request.largest_batch)]
        stamps = [each.stamps for each in contestants if each.stamps is not None]
        judged = replace(result, due_ns=_judged_from_ns(request, result))
        return tokens_of(judged, [thread.ident for thread in threads], stamps)

    def run_loadgen(self, request: LoadGenRun) -> LoadGenResult:
        """On the known items."""
        from fairlap.scenarios.load.contestant_issue import LoadGenThread, issue_of
        from fairlap.scenarios.load.loadgen import path_misses_bound, run_loadgen
        from fairlap.scenarios.load.loadgen_messages import BOUNDS
        from fairlap.scenarios.load.system_under_test import FirstTokens

        threads, first_tokens, items = [], FirstTokens(), len(self._pool.known)
        with ExitStack() as stack:
            for thread in self._serving(request.workers):
                batched = thread.batched(request.largest_batch)
                call = None if batched is None else _keeping_inputs(batched.on(self._pool.known))
                threads.append(LoadGenThread(thread.contestant, call))
                for each in thread.contestants(request.largest_batch):
                    if each.stamps is not None:
                        stack.enter_context(each.stamps.notifying(first_tokens))
            issue = issue_of(
                threads,
                self._work.spec,
                self._pool.known,
                largest_batch=request.largest_batch,
                longest_wait_s=request.longest_wait_s,
                first_tokens=first_tokens,
            )
            found = run_loadgen(request, items, issue)
        if request.scenario != "server" or BOUNDS.isdisjoint(found.why_invalid):
            return found
        return structs.replace(found, path_misses_bound=path_misses_bound(request, items, issue.tokens))

    def _serving(self, count: int) -> list[ServingThread]:
        """Provide so many serving threads, the first of which has the contestant of the race.

        So do others, if its calls do not disturb each other; else each has its own contestant.
        """
        while len(self._threads) < count:
            shares = self._contestant.shared_by_threads
            if shares and self._threads:
                self._threads.append(self._threads[0].sharing())
                continue
            contestant = self._build(self._work) if self._threads else self._contestant
            self._threads.append(ServingThread(contestant, self._work, self._pool, self._build))
        return self._threads[:count]

    def _items(self, request: OfferLoad) -> list[Arrays]:
        if request.items == "one":
            return self._pool.new(1, request.seed)
        if request.items == "unique":
            return self._pool.new(request.requests, request.seed)
        return self._pool.of_a_trial(request.seed)


def _keeping_inputs(call: GroupCall) -> Callable[[Sequence[int]], tuple[Contestant, Any]]:
    """As LoadGen's wrapper takes it. Some frameworks point to the inputs, so they stay until the next call."""
    last: list[GroupResult] = []

    def of_items(items: Sequence[int]) -> tuple[Contestant, Any]:
        last[:] = [call(np.array(items, np.uint32))]
        return last[0].contestant, last[0].result

    return of_items


class _Kept:
    """The answers to drawn requests, under the number of their item and their own."""

    def __init__(
        self, threads: Sequence[ServingThread], asked: npt.NDArray[np.uint32], batched: BatchedCalls | None
    ) -> None:
        self._threads, self._asked, self._batched = threads, asked, batched
        self.outputs: dict[str, np.ndarray] = {}
        self.checked = 0
        self.without_answer = ""

    @property
    def _here(self) -> ServingThread:
        """The thread that served the request also looks at its answer."""
        return next(thread for thread in self._threads if thread.ident == threading.get_ident())

    def keep(self, number: int, result: Any) -> None:
        item = int(self._asked[number])
        try:
            if isinstance(result, GroupResult):
                assert self._batched is not None
                outputs = result.outputs_of(item, self._batched.output_axes)
            elif kind := deferred_type(result):
                self.without_answer = f"a {kind} instead of an answer"
                return
            else:
                outputs = self._here.contestant.outputs(result)
        except Exception as error:  # what it returned is no answer
            self.without_answer = described(error)
            return
        self.outputs |= {f"{item}/{number}/{name}": np.array(array) for name, array in outputs.items()}
        self.checked += 1


def _due_ns(request: OfferLoad) -> npt.NDArray[np.float64]:
    from fairlap.engine.load import random_arrivals_ns

    if request.rate_per_s is None:
        return np.zeros(request.requests)
    if not request.at_random:
        return np.arange(request.requests, dtype=np.float64) * (1e9 / request.rate_per_s)
    return random_arrivals_ns(request.requests, request.rate_per_s, request.seed)


def _asked(
    request: OfferLoad, items: int, known: int, requests: int, rng: np.random.Generator
) -> npt.NDArray[np.uint32]:
    if request.items == "unique":
        return np.arange(requests, dtype=np.uint32) % np.uint32(items)
    asked = rng.integers(items, size=requests, dtype=np.uint32)
    if request.kind == "capacity":
        asked[-request.workers :] = rng.integers(known, size=min(request.workers, requests))
    return asked


def _drawn(
    request: OfferLoad, asked: npt.NDArray[np.uint32], known: int, rng: np.random.Generator
) -> npt.NDArray[np.uint32]:
    """Draw requests about known items.

    While an answer is looked at, no other request is served. The capacity is a rate of serving without a pause, so
    there the last answers are looked at.
    """
    if request.items != "pool":
        return np.zeros(0, np.uint32)
    if request.kind == "capacity":
        return np.arange(max(0, len(asked) - request.workers), len(asked), dtype=np.uint32)
    places = np.flatnonzero(asked < known)
    early = places[places < _EARLY]
    chosen = [rng.choice(each, min(len(each), _KEPT // 2), replace=False) for each in (early, places)]
    return np.unique(np.concatenate(chosen)).astype(np.uint32)


def _decision(request: OfferLoad) -> Decision:
    from fairlap.engine.load import Decision

    assert request.bound_s is not None
    missed_at, met_at = verdict.LateShareTest(1 - request.percentile).limits(request.requests, request.fewest)
    if request.first_token_s is not None:  # whether both bounds are met is known at the end
        met_at = np.full_like(met_at, _NEVER)
    return Decision(1e9 * request.bound_s, missed_at, met_at)


def _judged_from_ns(request: OfferLoad, result: LoadResult) -> npt.NDArray[np.float64]:
    """Choose from when the latency of each request counts against the bound: from when it was due.

    A lone request waits for no other, so it counts from when the one before it was completed, if that was later.
    Otherwise one stall of the machine makes hundreds of short requests late at once, and seems to show that even a lone
    one takes too long.
    """
    if request.kind != "lone":
        return result.due_ns
    before_ns = np.concatenate([[0.0], result.completed_ns[:-1]])  # one worker serves them in order
    judged_ns: npt.NDArray[np.float64] = np.fmax(result.due_ns, before_ns)
    return judged_ns


def trial_of(
    request: OfferLoad,
    result: LoadResult,
    tokens: TokensOfRequests | None = None,
    checked: int = 0,
    without_answer: str = "",
    bytes_of_stamps: int = 0,
) -> LoadTrial:
    """Summarize what became of the requests, and whether they met the bound."""
    answered = np.isfinite(result.completed_ns)
    due, issued, started, completed = (
        each[answered] for each in (result.due_ns, result.issued_ns, result.started_ns, result.completed_ns)
    )
    latency_ns, requests = completed - due, int(answered.sum())
    judged_ns = completed - _judged_from_ns(request, result)[answered]
    late = 0 if request.bound_s is None else int((judged_ns > 1e9 * request.bound_s).sum())
    late_first_tokens = 0
    if request.first_token_s is not None:  # an answer without stamps is not shown to be in time
        late_first_tokens = requests - (0 if tokens is None else tokens.in_time(request.first_token_s))
    most_late = max(late, late_first_tokens)
    waiting = 0 if result.decided else int((np.isfinite(result.issued_ns) & ~answered).sum())
    pending = 0 if result.left_in_call else waiting  # they wait for calls that returned, so they are late at most
    test = verdict.LateShareTest(1 - request.percentile)
    outcome = result.decided or test.outcome(most_late + pending, requests + pending)
    times = None
    if requests and not pending:
        p50, p90, p99 = (float(each) for each in np.quantile(latency_ns, (0.5, 0.9, 0.99)))
        times = LoadTimes(
            p50_ns=p50,
            p90_ns=p90,
            p99_ns=p99,
            service_p50_ns=float(np.median(completed - started)),
            issue_lateness_p99_ns=float(np.quantile(issued - due, 0.99)),
            tokens=None if tokens is None else tokens.times,
            mean_ns=float(np.mean(latency_ns)),
        )
    return LoadTrial(
        kind=request.kind,
        rate_per_s=request.rate_per_s,
        requests=requests,
        late=late,
        outcome=outcome if requests else "missed",
        unanswered=waiting,
        pending=pending,
        served_per_s=1e9 * requests / float(completed.max()) if requests else 0.0,
        elapsed_s=result.elapsed_ns / 1e9,
        times=times,
        mean_batch=requests / max(len(np.unique(result.group[answered])), 1),
        checked=checked,
        without_answer=without_answer,
        bytes=bytes_of_stamps,
        late_first_tokens=late_first_tokens,
    )

"""An open-loop load: requests issued when they are due, whatever the service does, and served by worker threads.

The arrival clock, the queue and the stamps are native; Python runs only the service's calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairlap import quantity_text
from fairlap.engine import _native
from fairlap.engine.arguments import number_of, one_of, positive_number, truth, whole_number
from fairlap.engine.clocks import clock_named
from fairlap.errors import NOT_ENOUGH_MEMORY, InvalidRequest, NotAvailable, shown

GIVE_UP_NS = 10e9
SPIN_NS = 100e3
MOST_REQUESTS = 10**8
MOST_WORKERS = 1024
MOST_IN_BATCH = 2**20
_NO_NUMBERS = np.empty(0, np.uint32)


def random_arrivals_ns(requests: int, rate_per_s: float, seed: int) -> NDArray[np.float64]:
    """Draw when so many requests of a Poisson process are due, at exactly this rate.

    Given their number, they are spread evenly over its time. A process whose number is drawn too has another rate in
    each short load.
    """
    requests = whole_number("requests", requests, least=1, most=MOST_REQUESTS)
    end_ns = 1e9 * requests / positive_number("rate_per_s", rate_per_s)
    return np.sort(_generator(seed, "arrivals").random(requests)) * end_ns


def _generator(seed: int, stream: Literal["arrivals", "services"]) -> np.random.Generator:
    """Arrivals and services of one seed must not be drawn from one stream, or they would depend on each other."""
    seed = whole_number("seed", seed, least=0, most=2**63 - 1)
    return np.random.default_rng([seed, ("arrivals", "services").index(stream)])


def constant_arrivals_ns(rate_per_s: float, seconds: float) -> NDArray[np.float64]:
    """When requests at equal distances are due: from 0, ascending."""
    rate, length_s = positive_number("rate_per_s", rate_per_s), positive_number("seconds", seconds)
    if rate * length_s > MOST_REQUESTS:
        raise InvalidRequest(f"a load has at most {MOST_REQUESTS:,} requests, not {rate * length_s:,.0f}")
    end_ns = length_s * 1e9
    due_ns = np.arange(math.ceil(end_ns * rate / 1e9), dtype=np.float64) * (1e9 / rate)
    return due_ns[due_ns < end_ns]


@dataclass(frozen=True)
class Decision:
    """Ends a load early, once the share of late requests is decided; what is late took longer than ``bound_ns``.

    Both arrays are looked up by the number of completed requests; beyond their end nothing is decided. In a group the
    look is after its last request.
    """

    bound_ns: float
    missed_at: NDArray[np.uint32]  # so many late requests, or more, mean that the bound is missed
    met_at: NDArray[np.int32]  # so many, or fewer, mean that it is met; -1: not decidable yet


@dataclass(frozen=True)
class Worker:
    """One thread that serves requests. Only its calls hold the interpreter lock."""

    calls: Sequence[Callable[[], Any]]  # by item; a request that is served alone runs calls[item]()
    batch_call: Callable[[NDArray[np.uint32]], Any] | None = None  # gets the items of a group of several
    done: Callable[[Any], Any] | None = None  # waits until what a call returned is complete


@dataclass(frozen=True)
class NativeService:
    """A worker that takes a known time for each request, without Python. A group takes as long as its longest.

    Workers of the same seed take the same time for the same request.
    """

    mean_ns: float
    kind: Literal["constant", "exponential"] = "constant"
    by: Literal["spinning", "sleeping"] = "spinning"
    seed: int = 0

    def length_ns(self, requests: int) -> NDArray[np.float64]:
        """How long each request takes."""
        if self.kind == "constant":
            return np.full(requests, float(self.mean_ns))
        return _generator(self.seed, "services").exponential(self.mean_ns, requests)


@dataclass(frozen=True)
class LoadResult:
    """What happened to each request, in nanoseconds since the start of the load; NaN where it did not happen.

    Latency is ``completed_ns - due_ns``, so that the wait in a queue counts, however late a request was issued.
    """

    due_ns: NDArray[np.float64]
    issued_ns: NDArray[np.float64]
    started_ns: NDArray[np.float64]  # a worker took it
    completed_ns: NDArray[np.float64]
    worker: NDArray[np.int32]  # which one served it; -1: none
    group: NDArray[np.int32]  # groups are numbered in the order in which they were taken; -1: none
    decided: Literal["met", "missed", ""]
    interrupted: bool
    gave_up: bool
    elapsed_ns: float
    left_in_call: int  # workers whose call did not return in time; their threads stay in the process
    collector_paused: bool

    @property
    def latency_ns(self) -> NDArray[np.float64]:
        return self.completed_ns - self.due_ns

    @property
    def lateness_ns(self) -> NDArray[np.float64]:
        """By how much each request was issued after it was due: what the engine itself adds."""
        return self.issued_ns - self.due_ns


@dataclass
class _Columns:
    """The memory of a load: every page is written before it starts."""

    count: int
    issued_ns: NDArray[np.float64] = field(init=False)
    started_ns: NDArray[np.float64] = field(init=False)
    completed_ns: NDArray[np.float64] = field(init=False)
    worker: NDArray[np.int32] = field(init=False)
    group: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        self.issued_ns, self.started_ns, self.completed_ns = (np.full(self.count, np.nan) for _ in range(3))
        self.worker, self.group = (np.full(self.count, -1, np.int32) for _ in range(2))


def run_load(
    arrivals_ns: ArrayLike,
    items: ArrayLike,
    workers: Sequence[Worker | NativeService],
    *,
    largest_batch: int = 1,
    longest_wait_ns: float = 0.0,
    decision: Decision | None = None,
    give_up_ns: float = GIVE_UP_NS,
    kept: ArrayLike = _NO_NUMBERS,
    keep: Callable[[int, Any], None] | None = None,
    warm_up: bool = True,
    spin_ns: float = SPIN_NS,
    clock: str = "auto",
) -> LoadResult:
    """Issue request after request when it is due, ``arrivals_ns`` after the start, and serve them in this order.

    ``items`` are which input each request asks about. Each worker is one thread. A free worker takes the oldest
    waiting request; with ``largest_batch`` it takes a group, as soon as it is full or its oldest request has waited
    ``longest_wait_ns`` since it was due (0: whatever is there).

    The load ends when every request is completed, the decision is made, a call raises (its exception is raised here),
    Ctrl-C is pressed, or ``give_up_ns`` after the last request is due: what is not completed by then stays NaN. Calls
    that still run then have as long again to return, or until a second Ctrl-C. After that their threads are left behind
    with all that they use, and end when the call returns; a call that never releases the interpreter lock cannot be
    left.

    ``keep(request, result)`` is called for the requests in ``kept`` by the worker, after the completion stamp: the
    request's latency does not contain it, but the next request waits. For a request of a group it gets the group's
    result; see `LoadResult.place_in_group`. With ``warm_up`` every worker serves the first request once before the
    start, and once the first group of ``largest_batch``, since frameworks make their threads in a thread's first call.

    A free worker wakes ``spin_ns`` before the next request is due, and spins.
    """
    due_ns = _arrivals(arrivals_ns)
    asked = _numbers("items", items, most=2**32)
    if asked.size != due_ns.size:
        raise InvalidRequest(f"items has {asked.size} entries for {due_ns.size} requests; give one for each")
    if not 1 <= len(workers) <= MOST_WORKERS:
        raise InvalidRequest(f"a load has 1 to {MOST_WORKERS} workers (got {len(workers)})")
    largest_batch = whole_number("largest_batch", largest_batch, least=1, most=MOST_IN_BATCH)
    on_clock = clock_named(clock)
    services = [_service(worker, asked, largest_batch, on_clock) for worker in workers]
    flags = np.zeros(due_ns.size, np.uint8)
    flags[_numbers("kept", kept, most=due_ns.size)] = 1
    if keep is not None and not callable(keep):
        raise InvalidRequest(f"keep must be callable, not {shown(keep)}")
    bound_ns, missed_at, met_at = _limits(decision)
    asked.flags.writeable = False  # a worker's batch_call gets a slice of it
    try:
        columns = _Columns(due_ns.size)
        record = _native.run_load(
            services,
            on_clock,
            due_ns=due_ns.data,
            items=asked,
            issued_ns=columns.issued_ns.data,
            started_ns=columns.started_ns.data,
            completed_ns=columns.completed_ns.data,
            worker=columns.worker.data,
            group=columns.group.data,
            largest_batch=largest_batch,
            longest_wait_ns=_not_negative("longest_wait_ns", longest_wait_ns),
            bound_ns=bound_ns,
            missed_at=missed_at.data,
            met_at=met_at.data,
            kept=flags.data,
            look=keep,
            give_up_ns=positive_number("give_up_ns", give_up_ns),
            spin_ns=_not_negative("spin_ns", spin_ns),
            warm_up=truth("warm_up", warm_up),
            pause_collector=True,
        )
    except MemoryError:
        raise NotAvailable(NOT_ENOUGH_MEMORY) from None
    return _result(record, due_ns, columns, collector_paused=not record.collector_came_back)


def _arrivals(arrivals_ns: ArrayLike) -> NDArray[np.float64]:
    due_ns = np.array(arrivals_ns, np.float64)
    if due_ns.ndim != 1 or due_ns.size > MOST_REQUESTS:
        raise InvalidRequest(f"arrivals_ns must be one dimension of at most {MOST_REQUESTS:,} times")
    if not np.isfinite(due_ns).all() or (due_ns < 0).any() or (np.diff(due_ns) < 0).any():
        raise InvalidRequest("arrivals_ns must be finite, from 0 and ascending")
    return due_ns


def _numbers(name: str, values: ArrayLike, *, most: int) -> NDArray[np.uint32]:
    numbers = np.array(values)
    if numbers.ndim != 1 or (numbers.size > 0 and not np.issubdtype(numbers.dtype, np.integer)):
        raise InvalidRequest(f"{name} must be one dimension of whole numbers")
    if numbers.size > 0 and not (numbers.min() >= 0 and numbers.max() < most):
        raise InvalidRequest(f"{name} must be from 0 to {most - 1} (got {numbers.min()} to {numbers.max()})")
    return numbers.astype(np.uint32)


def _limits(decision: Decision | None) -> tuple[float, NDArray[np.uint32], NDArray[np.int32]]:
    if decision is None:
        return math.inf, np.empty(0, np.uint32), np.empty(0, np.int32)
    bound_ns = positive_number("bound_ns", decision.bound_ns)
    return (
        bound_ns,
        np.ascontiguousarray(decision.missed_at, np.uint32),
        np.ascontiguousarray(decision.met_at, np.int32),
    )


def _service(
    worker: Worker | NativeService, items: NDArray[np.uint32], largest_batch: int, clock: _native.Clock
) -> _native.PythonService | _native.KnownService:
    if isinstance(worker, NativeService):
        positive_number("mean_ns", worker.mean_ns)
        one_of("kind", worker.kind, ("constant", "exponential"))
        by = _native.KnownServiceBy[one_of("by", worker.by, ("spinning", "sleeping"))]
        return _native.KnownService(worker.length_ns(items.size).data, by, clock)
    calls = list(worker.calls)
    for each in (*calls, *(extra for extra in (worker.batch_call, worker.done) if extra is not None)):
        if not callable(each):
            raise InvalidRequest(f"a worker's calls must be callable, not {shown(each)}")
    if items.size > 0 and int(items.max()) >= len(calls):
        raise InvalidRequest(
            f"a request asks about item {items.max()}, but a worker has {quantity_text.count(len(calls), 'call')}"
        )
    if largest_batch > 1 and worker.batch_call is None:
        raise InvalidRequest("a worker without a batch_call serves single requests; give one, or largest_batch=1")
    return _native.PythonService(calls, worker.batch_call, worker.done)


def _not_negative(name: str, value: object) -> float:
    number = number_of(name, value)
    if not 0 <= number < math.inf:
        raise InvalidRequest(f"{name} must be a finite number of at least 0, not {shown(value)}")
    return number


def _result(
    record: _native.LoadRecord, due_ns: NDArray[np.float64], columns: _Columns, *, collector_paused: bool
) -> LoadResult:
    interrupted = record.end is _native.LoadEnd.interrupted
    if record.exception is not None and not (interrupted and isinstance(record.exception, KeyboardInterrupt)):
        raise record.exception
    decided: dict[_native.LoadEnd, Literal["met", "missed"]] = {
        _native.LoadEnd.met: "met",
        _native.LoadEnd.missed: "missed",
    }
    return LoadResult(
        due_ns=due_ns,
        issued_ns=columns.issued_ns,
        started_ns=columns.started_ns,
        completed_ns=columns.completed_ns,
        worker=columns.worker,
        group=columns.group,
        decided=decided.get(record.end, ""),
        interrupted=interrupted,
        gave_up=record.end is _native.LoadEnd.gave_up,
        elapsed_ns=record.elapsed_ns,
        left_in_call=record.left_in_call,
        collector_paused=collector_paused,
    )

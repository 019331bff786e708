"""Run MLPerf's LoadGen against a contestant in this process.

LoadGen is a library that calls back. It runs on a separate thread, so that the calling thread can watch it and
Ctrl-C ends it; the contestant runs on its serving threads. Queries begin when LoadGen issues them and end when
QuerySamplesComplete is called; both are measured by LoadGen.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.scenarios.load.early_stopping import fewest_queries
from fairlap.scenarios.load.loadgen_logs import empty_logs, result_in
from fairlap.scenarios.load.loadgen_messages import (
    BOUNDS,
    LoadGenFailed,
    LoadGenResult,
    LoadGenRun,
    counts_tokens,
    require_loadgen,
    require_run,
)
from fairlap.scenarios.load.system_under_test import Answer, FirstTokens, Issue, SystemUnderTest

_SCENARIOS = {
    "single-stream": "SingleStream",
    "multi-stream": "MultiStream",
    "server": "Server",
    "offline": "Offline",
}
_NO_BOUND_S = 86_400.0
_NO_AUDIT_FILE = ""  # LoadGen would otherwise take settings from a file audit.config in the current folder
_WATCHED_EVERY_S = 0.1
_ENDS_WITHIN_S = 5.0  # after a failure; the server scenario waits for arrivals that are still due
_CALLS_BEFORE = 5  # to learn how long one takes
_MOST_ATTEMPTS = 3
_SPARE = 1.3  # times as many queries as should be enough: running out of them ends a run early
_LATE_QUERIES = 2  # with so many, a server run of the default length is still accepted
_SHORTEST_S = 20e-6  # of an expected latency; LoadGen allocates all queries before it starts

_CLOCK_SLACK_S, _CLOCK_SLEW = 1e-3, 1e-3  # NTP slews a clock by at most half of that

_one_at_a_time = threading.Lock()  # LoadGen has one logger for the whole process


def run_loadgen(request: LoadGenRun, items: int, issue: Issue) -> LoadGenResult:
    """Run LoadGen; the logs are those of the last attempt.

    Raises what the contestant raised; DroppedRequests if it leaves samples unanswered; LoadGenFailed if LoadGen itself
    failed; NotAvailable if it is not installed.
    """
    require_loadgen()
    require_run(request, items)
    empty_logs(request.logs)
    if not issue.serve:
        raise InvalidRequest("a contestant under load needs at least one serving thread")
    expected_s = _expected_s(request, items, issue)
    attempt = 1
    while True:
        run = _Run(request, items, issue, expected_s)
        with _old_objects_left_alone(), _ClockStep() as clock:
            result = run.result()
        result = msgspec.structs.replace(result, largest_group=run.largest_group, attempts=attempt)
        if clock.was_set and not request.accuracy:
            result = msgspec.structs.replace(result, valid=False, why_invalid=(*result.why_invalid, "clock"))
        if "duration" not in result.why_invalid or request.expected_latency_s is not None or attempt == _MOST_ATTEMPTS:
            return result
        expected_s, attempt = expected_s / _SPARE * _share_of_least(request, result), attempt + 1


def path_misses_bound(request: LoadGenRun, items: int, tokens: int = 0) -> bool:
    """Whether a contestant that answers at once misses the bound too: LoadGen reaches contestants through Python."""
    first_tokens = FirstTokens()
    at_once = Issue(
        [lambda group: first_tokens()] * request.workers,
        lambda result, count: [],
        largest_batch=request.largest_batch,
        longest_wait_s=request.longest_wait_s,
        tokens=tokens,
        first_tokens=first_tokens,
    )
    with TemporaryDirectory(prefix="fairlap-loadgen-") as logs:
        found = run_loadgen(msgspec.structs.replace(request, logs=logs, logged_answers=0), items, at_once)
    return not BOUNDS.isdisjoint(found.why_invalid)


@contextmanager
def _old_objects_left_alone() -> Iterator[None]:
    """By Python's garbage collector: looking through all objects of a framework takes longer than many calls."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _ClockStep:
    """Whether the system's clock was set meanwhile.

    On Linux it is the clock of LoadGen, whose own check compares it with itself.
    """

    was_set = False

    def __enter__(self) -> _ClockStep:
        self._began_s = time.time(), time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        system_s, steady_s = time.time() - self._began_s[0], time.monotonic() - self._began_s[1]
        self.was_set = abs(system_s - steady_s) > _CLOCK_SLACK_S + _CLOCK_SLEW * steady_s


def _expected_s(request: LoadGenRun, items: int, issue: Issue) -> float:
    """Of a call on the largest group that a query can have; the shortest of some, so that queries do not run out."""
    if request.expected_latency_s is not None:
        return max(request.expected_latency_s, _SHORTEST_S)
    if request.least_s == 0 or request.accuracy or request.scenario == "server":
        return _SHORTEST_S  # not used
    size = {"single-stream": 1, "multi-stream": request.samples_per_query}.get(request.scenario, issue.largest_batch)
    group = [number % items for number in range(min(size, issue.largest_batch))]
    seconds: list[float] = []

    def call() -> None:
        with issue.in_thread():
            for _ in range(_CALLS_BEFORE):
                began_s = time.perf_counter()
                issue.serve[0](group)
                seconds.append(time.perf_counter() - began_s)

    _finish_in_thread(call)
    return max(min(seconds), _SHORTEST_S)


def _finish_in_thread(call: Callable[[], None]) -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_WATCHED_EVERY_S)
    if raised:
        raise raised[0]


def _share_of_least(request: LoadGenRun, result: LoadGenResult) -> float:
    """How long a run that was too short took, as a share of the least duration."""
    took_s = result.max_s if request.scenario == "offline" else (result.mean_s or 0.0) * result.queries
    return min((took_s or 0.0) / request.least_s, 1.0) or 0.1


class _Run:
    """One run of LoadGen."""

    def __init__(self, request: LoadGenRun, items: int, issue: Issue, expected_s: float) -> None:
        import mlperf_loadgen

        self._loadgen, self._request, self._items = mlperf_loadgen, request, items
        self._settings = _settings(mlperf_loadgen, request, items, issue, expected_s)
        self._logs_answers = request.accuracy or request.logged_answers > 0
        self._tokens = issue.tokens if counts_tokens(request, issue.tokens) else 0
        self._under_test = SystemUnderTest(
            issue,
            self._complete,
            may_join=request.scenario == "server",
            begin=self._first_tokens if self._tokens else None,
        )
        self._give_up_s = max(request.give_up_s, 100 * expected_s)
        self._ended = threading.Event()
        self._raised: BaseException | None = None

    @property
    def largest_group(self) -> int:
        return self._under_test.largest_group

    def result(self) -> LoadGenResult:
        if not _one_at_a_time.acquire(timeout=_ENDS_WITHIN_S):  # one that failed may be about to end
            self._under_test.close(0.0)
            raise LoadGenFailed("another run of LoadGen has not ended in this process")
        threading.Thread(target=self._start, daemon=True).start()
        try:
            while not self._ended.wait(_WATCHED_EVERY_S):
                self._under_test.fail_if_stalled(self._give_up_s)
                if self._under_test.failure is not None:
                    self._ended.wait(_ENDS_WITHIN_S)
                    break
        except BaseException as error:  # Ctrl-C
            self._under_test.fail(error)
            self._ended.wait(_ENDS_WITHIN_S)
            raise
        finally:
            self._under_test.close(_ENDS_WITHIN_S if self._under_test.failure is None else 0.0)
        failure = self._under_test.failure or self._raised
        if failure is not None:
            raise failure
        return result_in(self._request, self._tokens)

    def _start(self) -> None:
        loadgen = self._loadgen
        under_test = loadgen.ConstructSUT(self._issue, lambda: None)
        library = loadgen.ConstructQSL(self._items, self._items, lambda _items: None, lambda _items: None)
        try:
            loadgen.StartTestWithLogSettings(under_test, library, self._settings, self._log_settings(), _NO_AUDIT_FILE)
        except BaseException as error:
            self._raised = error
        finally:
            loadgen.DestroyQSL(library)
            loadgen.DestroySUT(under_test)
            _one_at_a_time.release()
            self._ended.set()

    def _issue(self, samples: Sequence[Any]) -> None:
        self._under_test.issue([sample.id for sample in samples], [sample.index for sample in samples])

    def _first_tokens(self, ids: list[int]) -> None:
        loadgen = self._loadgen
        loadgen.FirstTokenComplete([loadgen.QuerySampleResponse(each, 0, 0) for each in ids])

    def _complete(self, ids: list[int], answers: Callable[[], Sequence[Answer]]) -> None:
        """LoadGen asks for the answers that it logs after it has stamped the end, and copies them before it returns."""
        loadgen = self._loadgen
        responses = [loadgen.QuerySampleResponse(each, 0, 0, self._tokens) for each in ids]
        if not self._logs_answers:
            loadgen.QuerySamplesComplete(responses)
            return
        places = {each: place for place, each in enumerate(ids)}
        read: list[Sequence[Answer]] = []

        def give(response: Any) -> None:
            if not read:
                read.append(answers())
            if read[0]:
                answer = read[0][places[response.id]]
                response.data, response.size = answer.ctypes.data, answer.nbytes

        loadgen.QuerySamplesComplete(responses, give)

    def _log_settings(self) -> Any:
        settings, output = self._loadgen.LogSettings(), self._loadgen.LogOutputSettings()
        output.outdir = self._request.logs
        settings.log_output = output
        settings.enable_trace = False  # a line for every sample
        return settings


def _settings(loadgen: Any, request: LoadGenRun, items: int, issue: Issue, expected_s: float) -> Any:
    settings = loadgen.TestSettings()
    settings.scenario = getattr(loadgen.TestScenario, _SCENARIOS[request.scenario])
    settings.mode = loadgen.TestMode.AccuracyOnly if request.accuracy else loadgen.TestMode.PerformanceOnly
    if counts_tokens(request, issue.tokens):
        settings.use_token_latencies = True
        settings.ttft_latency = round(1e9 * (request.first_token_s or _NO_BOUND_S))
        settings.tpot_latency = round(1e9 * (request.per_token_s or _NO_BOUND_S))
    settings.min_duration_ms = round(1000 * request.least_s)
    settings.min_query_count = _least_queries(request, items)
    seeds = np.random.SeedSequence(request.seed).generate_state(4).tolist()
    settings.qsl_rng_seed, settings.sample_index_rng_seed, settings.schedule_rng_seed = seeds[:3]
    settings.accuracy_log_rng_seed = seeds[3]
    settings.accuracy_log_sampling_target = request.logged_answers
    percentile = request.judged_percentile
    if request.scenario == "single-stream":
        settings.single_stream_target_latency_percentile = percentile
        settings.single_stream_expected_latency_ns = 1e9 * expected_s / _SPARE
    elif request.scenario == "multi-stream":
        groups = -(-request.samples_per_query // issue.largest_batch)
        turns = -(-groups // len(issue.serve))
        settings.multi_stream_samples_per_query = request.samples_per_query
        settings.multi_stream_target_latency_percentile = percentile
        settings.multi_stream_expected_latency_ns = 1e9 * turns * expected_s / _SPARE
    elif request.scenario == "server":
        settings.server_target_qps = request.rate_per_s
        settings.server_target_latency_ns = round(1e9 * (request.bound_s or 0.0))
        settings.server_target_latency_percentile = percentile
    else:
        settings.offline_expected_qps = _SPARE * len(issue.serve) * issue.largest_batch / expected_s
    return settings


def _least_queries(request: LoadGenRun, items: int) -> int:
    if request.least_queries is not None:
        return request.least_queries
    if request.scenario == "offline":
        return items
    # To judge the streams' latency, early stopping needs one query more than with one that is late.
    if request.scenario == "server":
        return fewest_queries(request.judged_percentile, _LATE_QUERIES)
    return fewest_queries(request.judged_percentile, 1)

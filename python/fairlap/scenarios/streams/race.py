"""Servers that stream, loaded in turns: each block gives all of them the same requests, in an order that is drawn."""

from __future__ import annotations

import math
import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.machine.race_lock.lock import one_race
from fairlap.request.fields.load import MOST_WORKERS
from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.client import httpx_module
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.examination import examine
from fairlap.scenarios.streams.figures import figures_of
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.outcome import Outcome
from fairlap.scenarios.streams.rate_trials import SearchedRate, search_rate
from fairlap.scenarios.streams.result import StreamsResult

BUDGET_S, BUDGET_OF_SEARCHES_S = 300.0, 900.0
_MOST_BLOCKS = 60
_SEARCH_CONNECTIONS = 64
_SPARE_CONNECTIONS = 16
_TIMES_AS_OPEN = 4.0  # connections, for each answer that is open on average if answers take as long as alone
_SHORTEST_TRIAL_S, _ANSWERS_IN_A_TRIAL = 2.0, 5.0
_REPLAYED_S = 60.0  # of a trace, or all of it
_FEWEST_REQUESTS = 20
_MOST_SEED = 2**31

_Turn = tuple[list[Served], float, SearchedRate | None]
"""The loads of a turn, what the contestant is ranked by, and the search of a rate."""


class StreamRace:
    def __init__(self, asked: StreamsAsked, notify: Callable[[str], None] = lambda _text: None) -> None:
        httpx_module()
        self._asked, self._notify = asked, notify
        self._seed = secrets.randbelow(_MOST_SEED) if asked.seed is None else asked.seed
        self._contestants = [Contestant(each) for each in asked.servers]
        usual_s = BUDGET_OF_SEARCHES_S if asked.searches else BUDGET_S
        self._budget_s = asked.budget_s or (usual_s if asked.blocks is None else math.inf)
        self._began_s, self._trial_s = time.perf_counter(), _SHORTEST_TRIAL_S

    def run(self) -> StreamsResult:
        ended, interrupted = "", False
        with one_race(wait=self._asked.wait), self._closing():
            self._began_s = time.perf_counter()
            try:
                self._examine()
                ended = self._blocks()
            except KeyboardInterrupt:
                interrupted = True
        found = Outcome(self._asked, self._contestants)
        return found.result(
            trial_s=self._trial_s,
            elapsed_s=self._spent_s,
            seed=self._seed,
            ended_early=ended,
            interrupted=interrupted,
        )

    @property
    def _spent_s(self) -> float:
        return time.perf_counter() - self._began_s

    @contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        finally:
            for contestant in self._contestants:
                contestant.close()

    def _examine(self) -> None:
        asked, certificates = self._asked, self._asked.certificates.context()
        for each in self._contestants:
            self._notify(f"asking {each.server.name}")
            each.examined = examine(each.server, certificates, asked.examples(), asked.tokens)
        turn_s = max(self._alone_s, default=0.0) + asked.think_s
        usual_s = max(_SHORTEST_TRIAL_S, _ANSWERS_IN_A_TRIAL * turn_s)
        self._trial_s = asked.trial_s or (max(usual_s, _REPLAYED_S) if asked.replays else usual_s)

    @property
    def _loaded(self) -> list[Contestant]:
        """Those that answered; a disqualified one is loaded too, since its figures are shown."""
        return [each for each in self._contestants if each.found.answers]

    @property
    def _alone_s(self) -> list[float]:
        return [each.found.alone_s for each in self._loaded]

    def _blocks(self) -> str:
        """Return why the race ended before all blocks; empty where it did not."""
        until_decided = self._asked.blocks is None
        most = self._asked.blocks or _MOST_BLOCKS
        looks = verdict.possible_looks(most) if until_decided else ()
        draw = random.Random(f"streams {self._seed}")
        for block in range(most if self._loaded else 0):
            order = list(self._loaded)
            draw.shuffle(order)
            self._block(block, order)
            done, spent_s = block + 1, self._spent_s
            after = f"stopped after {quantity_text.count(done, 'block')}"
            if until_decided and (so_far := Outcome(self._asked, self._contestants)).ranked < 2:
                return f"{after}: fewer than two servers can be ranked"
            if done in looks and so_far.is_decided:
                return f"{after}: every comparison is decided"
            if done < most and spent_s + spent_s / done > self._budget_s:
                return f"{after}: the budget allows no further block"
        return ""

    def _block(self, block: int, order: Sequence[Contestant]) -> None:
        """Load each once; a block that is interrupted leaves nothing."""
        turns: list[tuple[Contestant, _Turn]] = []
        for contestant in order:
            self._notify(f"block {block + 1}: {contestant.server.name}")
            turns.append((contestant, self._turn(contestant, block)))
        for contestant, (loads, judged_ns, searched) in turns:
            contestant.loads += loads
            contestant.judged_ns.append(judged_ns)
            contestant.searched += [] if searched is None else [searched]

    def _turn(self, contestant: Contestant, block: int) -> _Turn:
        seed = random.Random(f"block {self._seed} {block}").randrange(_MOST_SEED)  # the same for all contestants
        if self._asked.replays:
            return self._replayed(contestant, block, seed)
        if self._asked.rate_per_s is not None:
            return self._at_rate(contestant, self._asked.rate_per_s, seed)
        if self._asked.concurrency is not None:
            return self._by_users(contestant, self._asked.concurrency, seed)
        return self._searched(contestant, seed)

    def _at_rate(self, contestant: Contestant, rate_per_s: float, seed: int) -> _Turn:
        requests = max(math.ceil(rate_per_s * self._trial_s), _FEWEST_REQUESTS)
        due_ns = self._asked.arrivals.due_ns(requests, rate_per_s, seed)
        served = contestant.load(self._asked, due_ns, self._connections(rate_per_s, requests), seed)
        return [served], self._time_of_an_answer(served), None

    def _replayed(self, contestant: Contestant, block: int, seed: int) -> _Turn:
        trace = self._asked.source.trace
        assert trace is not None
        due_ns, numbers = trace.stretch(block, self._trial_s, self._asked.rate_per_s)
        connections = self._asked.connections or min(len(numbers), MOST_WORKERS)
        served = contestant.load(self._asked, due_ns, min(connections, len(numbers)), seed, numbers)
        return [served], self._time_of_an_answer(served), None

    def _connections(self, rate_per_s: float, requests: int) -> int:
        """Return so many that requests seldom wait for one, and at most one for each."""
        asked = self._asked
        each_s = (max(self._alone_s) + asked.think_s) * asked.source.requests_in_a_session
        usual = math.ceil(_TIMES_AS_OPEN * max(asked.arrivals.cv, 1.0) * rate_per_s * each_s) + _SPARE_CONNECTIONS
        return min(asked.connections or min(usual, MOST_WORKERS), requests)

    def _by_users(self, contestant: Contestant, users: int, seed: int) -> _Turn:
        each_s = (min(self._alone_s) + self._asked.think_s) * self._asked.source.requests_in_a_session
        sessions = max(math.ceil(users * self._trial_s / each_s), 2 * users)
        served = contestant.load(self._asked, np.zeros(sessions), users, seed)
        if self._asked.think_s:
            return [served], self._time_of_an_answer(served), None
        per_s = figures_of([served], self._asked.bounds).tokens_per_s
        return [served], 1e9 / per_s if per_s else math.nan, None

    def _time_of_an_answer(self, served: Served) -> float:
        whole = figures_of([served], self._asked.bounds).end_to_end
        return math.nan if whole is None else whole.p50_ns

    def _searched(self, contestant: Contestant, seed: int) -> _Turn:
        connections = self._asked.connections or _SEARCH_CONNECTIONS
        searched = search_rate(
            lambda due_ns, trial_seed: contestant.load(self._asked, due_ns, connections, trial_seed),
            self._asked.bounds,
            arrivals=self._asked.arrivals,
            alone_s=contestant.found.alone_s,
            connections=connections,
            trial_s=self._trial_s,
            seed=seed,
            ends=lambda: self._spent_s > self._budget_s,
        )
        loads = [] if searched.at_largest_rate is None else [searched.at_largest_rate]
        rate_per_s = searched.largest_rate_per_s
        return loads, 1e9 / rate_per_s if rate_per_s else math.nan, searched

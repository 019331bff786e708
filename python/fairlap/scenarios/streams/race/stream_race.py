"""Servers that stream, loaded in turns: each block gives all of them the same requests, in an order that is drawn."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np

from fairlap import quantity_text
from fairlap.engine.load import random_arrivals_ns
from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.race.own_race import OwnRace, Shown
from fairlap.race.planning.plan import Block
from fairlap.request.fields.load import E_LOAD, MOST_WORKERS
from fairlap.request.fields.streams import Manners
from fairlap.scenarios.load.load_messages import LoadFound
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.clients.client_of_server import require_client
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.equal_work.agreement import agreement, answers_by_prompt
from fairlap.scenarios.streams.equal_work.examination import examine
from fairlap.scenarios.streams.equal_work.server_counters import cache_counters
from fairlap.scenarios.streams.floor.client_floor import FloorTimes, requests_for_floor
from fairlap.scenarios.streams.floor.known_server import client_against, known_server, pieces_of, requests_of
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.race.client_group import ClientGroup, NoClientLeft, sharing_clients
from fairlap.scenarios.streams.race.mannered_load import Mannered, work_after_hang_up
from fairlap.scenarios.streams.race.planned_load import asked_by
from fairlap.scenarios.streams.race.rate_trials import search_rate
from fairlap.scenarios.streams.race.started_servers import StartedServers
from fairlap.scenarios.streams.race.turn import Floors, Turn, fill
from fairlap.scenarios.streams.race.turn_length import TurnRequests
from fairlap.scenarios.streams.streams_found import Agreement
from fairlap.scenarios.streams.workload.overload import Step, step_of

_SEARCH_CONNECTIONS = 64
_SPARE_CONNECTIONS = 16
_TIMES_AS_OPEN = 4.0  # connections, for each answer that is open on average if answers take as long as alone
_SHORTEST_TRIAL_S, _ANSWERS_IN_A_TRIAL = 2.0, 5.0
_REPLAYED_S = 60.0  # of a trace, or all of it
_MOST_SEED = 2**31
_OF_A_SEARCH = "a search offers several rates, and its energy is that of none of them"
_OF_TWO_LOADS = "a turn has the load with and without slow clients and those that hang up"


class StreamRace(OwnRace):
    _asked: StreamsAsked
    _contestants: dict[str, Contestant]
    _started: StartedServers
    _trial_s: float
    _requests: TurnRequests
    _group: ClientGroup | None  # None: this process is the client
    _known_ports: dict[bool, int]  # of the null servers, by whether they are by gRPC

    @contextmanager
    def prepared(self) -> Iterator[None]:
        self._asked = asked_by(self.plan)
        for server in self._asked.servers:
            require_client(server)
        names = [each.text for each in self.plan.contestants]
        self._contestants = {name: Contestant(server) for name, server in zip(names, self._asked.servers, strict=True)}
        with ExitStack() as stack:
            self._group = self._sharing(stack)
            self._started = stack.enter_context(StartedServers(self.progress.announce))
            for contestant in self._contestants.values():
                stack.callback(contestant.close)
            here = [each for each in self._asked.servers if each.function is None and self._group is None]
            kinds = {each.is_by_grpc for each in here}
            self._known_ports = {kind: stack.enter_context(known_server(by_grpc=kind)) for kind in sorted(kinds)}
            self._examine()
            yield

    def _sharing(self, stack: ExitStack) -> ClientGroup | None:
        """Start the clients that share the load, where there are several."""
        load = self._asked.load
        if not load.clients:
            return None
        group = stack.enter_context(sharing_clients(load.clients, self.progress.announce))
        for contestant in self._contestants.values():
            group.require(contestant.server, self._asked.certificates)
            contestant.shared_by = group
        most = MOST_WORKERS * len(group.programs)
        if (load.concurrency or 0) > most:
            clients = quantity_text.count(len(group.programs), "client")
            raise InvalidRequest(
                f"--concurrency must be at most {most} with {clients} (got {load.concurrency})", code=E_LOAD
            )
        self.progress.announce(f"the load is shared by {', '.join(group.programs)}")
        return group

    def _examine(self) -> None:
        load, certificates = self._asked.load, self._asked.certificates.context()
        for name in self.plan.contestants:
            each = self._contestants[name.text]
            if self._started.start(each, name):
                self.progress.announce(f"asking {name.text}")
                each.examined = examine(each.server, certificates, self._asked.examples(), load.tokens)
                self._started.examined(each)
        turn_s = max(self._alone_s, default=0.0) + load.think_s
        usual_s = max(_SHORTEST_TRIAL_S, _ANSWERS_IN_A_TRIAL * turn_s)
        self._trial_s = load.trial_s or (max(usual_s, _REPLAYED_S) if load.replays else usual_s)
        self._requests = TurnRequests(load, self._trial_s, max(self._alone_s, default=1.0))

    @property
    def _alone_s(self) -> list[float]:
        """Of those that answer; a disqualified one is loaded too, since its figures are shown."""
        return [each.found.alone_s for each in self._contestants.values() if each.found.answers]

    def why_over(self) -> str:
        if self._group is not None and not self._group.programs:
            return "no client is left"
        return "" if self._alone_s else "no server answers"

    def run_block(self, block: Block, contestants: Sequence[str]) -> Sequence[Shown]:
        seed = random.Random(f"block {self.plan.seed} {block.number}").randrange(_MOST_SEED)  # the same for all
        began = [self._begun(block, name) for name in contestants]
        turns: dict[str, Turn] = {}
        for result in began:
            self.progress.began(result)
            result.began_s = self.elapsed_s
            turns[result.contestant] = self._turn_or_none(self._contestants[result.contestant], block, seed)
        self._requests.follow([turn.length for turn in turns.values() if turn.length is not None])
        turns = {
            name: replace(turn, floors=self._client_floor(self._contestants[name], turn, seed))
            for name, turn in turns.items()
        }
        agreed = self._agreements(turns)
        found = []
        for result in began:
            name = result.contestant
            samples = fill(result, self._contestants[name], turns[name], self._asked, agreed.get(name))
            found.append((result, samples))
        return found

    def _client_floor(self, contestant: Contestant, turn: Turn, seed: int) -> Floors | None:
        """Ask a server that does nothing; a function is its own client."""
        if contestant.server.function is not None or not contestant.found.answers:
            return None
        if turn.served is None or not turn.served.answered.any():
            return None
        if self._group is not None:
            return self._client_floors(self._group, contestant, turn.served, seed)
        requests, rate_per_s = requests_for_floor(turn.served)
        due_ns = random_arrivals_ns(requests, rate_per_s, seed)
        connections = self._connections(rate_per_s, requests)
        port = self._known_ports[contestant.server.is_by_grpc]
        return Floors(client_against(port, contestant, turn.served, self._asked, due_ns, connections, seed))

    def _client_floors(self, group: ClientGroup, contestant: Contestant, served: Served, seed: int) -> Floors:
        """Let each client load a null server on its own machine, by what it measured itself."""
        loads = {}
        for each in served.by_client:
            if not each.served.answered.any():
                continue
            requests, rate_per_s = requests_for_floor(each.served)
            due_ns = random_arrivals_ns(requests, rate_per_s, seed)
            sessions = requests_of(self._asked, requests, seed)
            connections = math.ceil(self._connections(rate_per_s, requests) / len(served.by_client))
            share = contestant.share(self._asked, sessions, due_ns, connections)
            loads[each.name] = (share, pieces_of(each.served))
        found = group.floors(loads)
        return Floors(FloorTimes.of_all(list(found.values())).floor, {name: own.floor for name, own in found.items()})

    def _connections(self, rate_per_s: float, requests: int) -> int:
        """Return so many that requests seldom wait for one, and at most one for each."""
        load = self._asked.load
        if load.searches:
            return load.connections or _SEARCH_CONNECTIONS
        each_s = (max(self._alone_s) + load.think_s) * load.requests_in_a_session
        burst = max(self._asked.arrivals.cv, 1.0)
        clients = 1 if self._group is None else len(self._group.programs)
        usual = math.ceil(_TIMES_AS_OPEN * burst * rate_per_s * each_s) + clients * _SPARE_CONNECTIONS
        return load.concurrency or min(load.connections or min(usual, clients * MOST_WORKERS), requests)

    def _begun(self, block: Block, name: str) -> ProcessResult:
        return ProcessResult(
            block=block.number,
            position=[self.plan.contestants[place].text for place in block.order].index(name),
            contestant=name,
            work_id=self.plan.works[block.work].id,
            conditions=block.conditions,
            data_seed=block.data_seed,
            caches="warm" if block.number else "cold",
        )

    def _agreements(self, turns: Mapping[str, Turn]) -> dict[str, Agreement | None]:
        """Compare the answers of each with those of the first one in the plan that answered in this block."""
        answers = {name: answers_by_prompt(turns[name].loads) for name in self._contestants if name in turns}
        first, *others = [name for name, own in answers.items() if own] or [""]
        return {name: agreement(answers[name], answers[first], first) for name in others}

    def _turn_or_none(self, contestant: Contestant, block: Block, seed: int) -> Turn:
        try:
            return self._turn(contestant, block, seed)
        except NoClientLeft as error:
            contestant.is_not_there(Notice(error.code, str(error)))
            return Turn()

    def _turn(self, contestant: Contestant, block: Block, seed: int) -> Turn:
        began_s = time.perf_counter()
        self._started.restart(contestant)
        if not contestant.found.answers:
            return Turn()
        lost_before = 0 if self._group is None else len(self._group.lost)
        with self._started.turn_of(contestant, self._asked) as meter:
            is_first = block.number % 2 == 0  # whichever load is, a server that is not warm yet is slower in it
            mannered = self._mannered(contestant, block, seed) if is_first else None
            before = cache_counters(contestant.server)
            served, search = self._served(contestant, block, seed)
            after = None if before is None else cache_counters(contestant.server)
            mannered = mannered if is_first else self._mannered(contestant, block, seed)
        cached = None if before is None or after is None else after.since(before)
        step = self._step(seed)
        if step is not None and served is not None:
            step = step.only(served.sessions)
        several = _OF_A_SEARCH if search is not None else _OF_TWO_LOADS if mannered is not None else ""
        taken = None if meter is None else meter.found(served, several)
        is_chosen = served is not None and search is None and not self._asked.load.replays and step is None
        length = self._requests.length_of(served.elapsed_s) if served is not None and is_chosen else None
        took_s = time.perf_counter() - began_s
        return Turn(
            served,
            search,
            took_s,
            length=length,
            step=step,
            manners=mannered,
            cached=cached,
            resources=taken,
            lost=() if self._group is None else tuple(self._group.lost[lost_before:]),
        )

    def _mannered(self, contestant: Contestant, block: Block, seed: int) -> Mannered | None:
        """Offer the same load of usual clients alone, and look whether the server works on for one that hung up.

        Before it, one answer ends what the server still computes for clients of another load.
        """
        if not self._asked.load.manners:
            return None
        contestant.asked_alone(self._asked)
        alone, _ = self._served(contestant, block, seed, Manners())
        assert alone is not None
        works_on = work_after_hang_up(contestant, self._asked) if self._asked.load.manners.abort_share else None
        return Mannered(alone, works_on)

    def _served(
        self, contestant: Contestant, block: Block, seed: int, manners: Manners | None = None
    ) -> tuple[Served | None, LoadFound | None]:
        """Clients have the ``manners`` that were asked for, unless others are given."""
        load = self._asked.load
        manners = load.manners if manners is None else manners
        if load.replays:
            return self._replayed(contestant, block.number, seed), None
        if load.rate_per_s is not None:
            return self._at_rate(contestant, load.rate_per_s, seed, manners), None
        if load.concurrency is not None:
            due_ns = np.zeros(self._requests.now)
            return contestant.load(self._asked, due_ns, load.concurrency, seed, manners=manners), None
        return self._searched(contestant, seed)

    def _step(self, seed: int) -> Step | None:
        """Draw the overload of a turn, which is the same for all of its block."""
        load = self._asked.load
        if load.overload is None or load.rate_per_s is None:
            return None
        return step_of(load.overload, load.rate_per_s, self._trial_s, self._asked.arrivals, seed)

    def _at_rate(self, contestant: Contestant, rate_per_s: float, seed: int, manners: Manners) -> Served:
        if (step := self._step(seed)) is not None:
            connections = min(self._asked.load.connections or MOST_WORKERS, len(step.due_ns))
            return contestant.load(self._asked, step.due_ns, connections, seed)
        requests = self._requests.now
        due_ns = self._asked.arrivals.due_ns(requests, rate_per_s, seed)
        kept = math.ceil(manners.slow_share * requests)  # busy for long with clients that read slowly
        connections = min(self._connections(rate_per_s, requests) + kept, MOST_WORKERS)
        return contestant.load(self._asked, due_ns, connections, seed, manners=manners)

    def _replayed(self, contestant: Contestant, block: int, seed: int) -> Served:
        trace = self._asked.source.trace
        assert trace is not None
        due_ns, numbers = trace.stretch(block, self._trial_s, self._asked.load.rate_per_s)
        connections = min(self._asked.load.connections or MOST_WORKERS, len(numbers))
        return contestant.load(self._asked, due_ns, connections, seed, numbers)

    def _searched(self, contestant: Contestant, seed: int) -> tuple[Served | None, LoadFound]:
        connections = self._asked.load.connections or _SEARCH_CONNECTIONS
        searched = search_rate(
            lambda due_ns, trial_seed: contestant.load(self._asked, due_ns, connections, trial_seed),
            self._asked.load.bounds,
            arrivals=self._asked.arrivals,
            alone_s=contestant.found.alone_s,
            connections=connections,
            trial_s=self._trial_s,
            seed=seed,
            ends=self.out_of_time,
        )
        return searched.at_largest_rate, searched.found

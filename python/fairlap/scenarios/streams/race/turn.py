"""One turn of a server: its requests, and what they show of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.launch.worker_process import Samples
from fairlap.race.processes.recorded_turns import medians_of_turns, timing_of
from fairlap.scenarios.generation import TIME_TO_FIRST_TOKEN
from fairlap.scenarios.load.load_messages import LoadFound
from fairlap.scenarios.load.scenario import NO_RATE
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.beyond_capacity import overload_found
from fairlap.scenarios.streams.clients.manner import USUAL
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.equal_work.equal_tokens import E_DROPPED_REQUESTS
from fairlap.scenarios.streams.equal_work.server_counters import CacheCounters
from fairlap.scenarios.streams.figures import WHOLE_ANSWER, Times, arrivals_of, figures_of, stamps_of, times_of
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.protocols.contract import FORCED
from fairlap.scenarios.streams.race.mannered_load import Mannered, mannered_found
from fairlap.scenarios.streams.race.turn_resources import Resources, resources_elsewhere
from fairlap.scenarios.streams.scenario import CERTIFICATES, CLIENTS, E_CLIENT_LOST, EACH_BLOCK, ONCE, STARTED, WEIGHTS
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.scenarios.streams.started.types_of_weights import types_of_weights
from fairlap.scenarios.streams.streams_found import (
    Agreement,
    ClientFloor,
    ClientFound,
    StreamFigures,
    StreamsFound,
    TurnLength,
)
from fairlap.scenarios.streams.workload.overload import Step

_METHOD = "stamped when its last token came, from when it was due or its user had thought"
_METHOD_OF_TOKENS = "stamped as soon as the client has the bytes"
_FEWER_THAN_TWO = "fewer than two whole answers came"
_ONE_AFTER_THE_OTHER = "servers run on while others have their turn"
_STOPPED = "they do not run while others have their turn"


@dataclass(frozen=True)
class Floors:
    """What the client adds; where several share the load, over all and of each, by its name."""

    of_all: ClientFloor | None
    by_client: Mapping[str, ClientFloor] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """``served`` is None where it was not loaded, or no rate met the bounds."""

    served: Served | None = None
    search: LoadFound | None = None
    elapsed_s: float = 0.0
    floors: Floors | None = None
    length: TurnLength | None = None
    step: Step | None = None  # of an overload
    manners: Mannered | None = None  # where some clients were not like others
    cached: CacheCounters | None = None  # None of a server that does not count for Prometheus
    resources: Resources | None = None  # None where it was not loaded, or fairlap did not start it
    lost: tuple[str, ...] = ()  # a line for each client that was lost under load

    @property
    def loads(self) -> list[Served]:
        return [] if self.served is None else [self.served]

    def shown(self, served: Served) -> tuple[Served, Served]:
        """Return the requests of which figures are, and those whose answers are looked at.

        An overload, and clients that are not like others, have figures of their own. Who was turned away in an
        overload was not dropped.
        """
        usual = np.array([each == USUAL for each in served.manners], bool)
        if self.step is not None:
            usual &= self.step.is_before
        return served.only(usual), served.only(usual | served.answered)

    def with_cache(self, figures: StreamFigures) -> StreamFigures:
        """Take the server's own counters where its answers do not count cached tokens."""
        if self.cached is None or figures.counts.cached_tokens is not None:
            return figures
        prompts, cached = round(self.cached.prompt_tokens), round(self.cached.cached_tokens)
        counts = msgspec.structs.replace(figures.counts, prompt_tokens=prompts, cached_tokens=cached)
        return msgspec.structs.replace(figures, counts=counts)


def fill(
    result: ProcessResult, contestant: Contestant, turn: Turn, asked: StreamsAsked, agreement: Agreement | None
) -> Samples:
    """Write what the turn showed into the result; return its raw samples."""
    examined, served = contestant.found, turn.served
    result.in_force = _in_force(contestant, served, asked)
    is_ours = contestant.server.start is not None
    result.in_turn_because = _STOPPED if is_ours else _ONE_AFTER_THE_OTHER
    result.work_in, result.version = "own_server" if is_ours else "other_server", contestant.version
    taken = turn.resources or resources_elsewhere(result.elsewhere)
    result.memory, result.energy, result.energy_absent = taken.memory, taken.energy, taken.energy_absent
    result.idle_power = taken.sensed.idle
    result.elapsed_s = turn.elapsed_s
    result.warnings = list(examined.warnings)
    usual, counted = (None, None) if served is None else turn.shown(served)
    figures = None if usual is None else turn.with_cache(figures_of(usual, asked.load.bounds, counted))
    why_not = examined.why_not
    result.streams = StreamsFound(
        alone_ns=1e9 * examined.alone_s if examined.answers else None,
        figures=figures,
        search=turn.search,
        client_floor=None if turn.floors is None else turn.floors.of_all,
        agreement=agreement,
        unqualified=None if why_not is None else Notice(why_not.code, why_not.why),
        turn=turn.length,
        ready_s=None if contestant.process is None else contestant.process.ready_s or None,
        clients=() if served is None else clients_found(served, turn.floors),
    )
    if not examined.answers and why_not is not None:
        result.outcome, result.code, result.message = "failed", why_not.code, why_not.why
        return {}
    if served is None or usual is None or figures is None:
        result.outcome, result.code = "failed", NO_RATE
        by_budget = turn.search is not None and turn.search.limited_by == "budget"
        result.message = "the budget ended its search" if by_budget else "no rate that was tried meets the bounds"
        return {}
    overload = asked.load.overload
    beyond = None if overload is None or turn.step is None else overload_found(served, turn.step, overload)
    result.streams = msgspec.structs.replace(result.streams, requests=stamps_of(served), overload=beyond)
    if turn.manners is not None:
        found = mannered_found(served, turn.manners)
        result.streams = msgspec.structs.replace(result.streams, manners=found)
    times = times_of(usual)
    if WHOLE_ANSWER not in times:
        result.outcome, result.code, result.message = (
            "failed",
            E_DROPPED_REQUESTS,
            figures.counts.failure or _FEWER_THAN_TWO,
        )
        return {}
    if turn.lost:  # the others had the whole load
        result.outcome, result.code, result.message = "failed", E_CLIENT_LOST, "; ".join(turn.lost)
    result.tokens_per_call, result.overlapping_per_s = asked.load.tokens, figures.requests_per_s
    result.timings = {name: _timing(name, values, served, result.contestant) for name, values in times.items()}
    result.round_samples = [times[WHOLE_ANSWER].size]
    result.rounds_ns = medians_of_turns(times[WHOLE_ANSWER], result.round_samples)
    return times | arrivals_of(served)


def clients_found(served: Served, floors: Floors | None) -> tuple[ClientFound, ...]:
    own = {} if floors is None else floors.by_client
    return tuple(
        ClientFound(
            name=each.name,
            requests=len(each.served.answers),
            answered=int(each.served.answered.sum()),
            client_share=each.served.client_share,
            first_token_p50_ns=_median(times, TIME_TO_FIRST_TOKEN),
            whole_answer_p50_ns=_median(times, WHOLE_ANSWER),
            floor=own.get(each.name),
            began_ns=each.began_ns,
            clock_offset_ns=each.clock.offset_ns,
            clock_uncertainty_ns=each.clock.uncertainty_ns,
        )
        for each in served.by_client
        for times in [times_of(each.served)]
    )


def _median(times: Mapping[str, Times], quantity: str) -> float | None:
    return float(np.median(times[quantity])) if quantity in times else None


def _in_force(contestant: Contestant, served: Served | None, asked: StreamsAsked) -> dict[str, str]:
    server, examined = contestant.server, contestant.found
    answers = (*examined.answers, *(() if served is None else served.answers))
    counted = sorted({each.counted_by for each in answers if each.failure is None})
    found = {
        "model": server.model,
        "api": server.api,
        "length": "forced" if examined.fields in FORCED else "not forced",
        "tokens counted by": " and ".join(counted),
        CERTIFICATES: server.why_no_certificate or asked.certificates.text,
        "http": examined.http_version,
        STARTED: _started(server),
        WEIGHTS: types_of_weights(server.start.model) if server.start is not None and server.start.model else "",
        CLIENTS: "" if served is None else ", ".join(each.name for each in served.by_client),
    }
    return {name: value for name, value in found.items() if value}


def _started(server: StreamServer) -> str:
    if server.start is None:
        return ""
    what = ", without a server" if server.start.is_in_process else ""
    return f"by fairlap{what}, {EACH_BLOCK if server.start.restarts else ONCE}"


def _timing(name: str, times_ns: Times, served: Served, whose: str) -> Timing:
    """Count all of them, as of contestants that take turns: a load has no course of its own."""
    return timing_of(
        times_ns,
        in_rounds=True,
        calls_per_sample=1,
        method=_METHOD if name == WHOLE_ANSWER else _METHOD_OF_TOKENS,
        resolution_ns=served.uncertainty_ns,
        whose=whose,
    )

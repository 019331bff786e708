"""Collective operations alone, without a model: as one rank, and as what conducts all ranks."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Collectives, Settings, Unsupported
from fairlap.request.fields.scale import Rank
from fairlap.scenarios.asking import Prepared, Reply
from fairlap.scenarios.collectives.collective_messages import CollectiveTimed, TimeCollective
from fairlap.scenarios.ranks.ranks_messages import PrepareCollectives
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Ended, Request
from fairlap.worker.ranks.conductor import Conductor
from fairlap.worker.service import framework_class

_FIRST_SAMPLES, _FIRST_WARM_UP = 5, 2
_FEWEST_SAMPLES, _MOST_SAMPLES = 10, 2000
_SECOND_S = 0.05
_SHORTEST_SAMPLE_NS = 20e3
_WARM_UP = 3


class CollectivesOfRank:
    def __init__(self, phase: Phases) -> None:
        self._phase = phase
        self._collectives: Collectives | None = None
        self._rank: Rank | None = None

    def reply(self, request: Request) -> tuple[Reply, tuple[()]]:
        self._phase.now = request.text
        if isinstance(request, PrepareCollectives):
            return self._prepare(request), ()
        if isinstance(request, TimeCollective):
            from fairlap.scenarios.collectives.timed_operations import timed

            if self._collectives is None or self._rank is None:
                raise InvalidRequest("no collective operations are prepared yet")
            return timed(self._collectives, request, self._rank), ()
        if self._collectives is not None and self._collectives.leave is not None:
            self._collectives.leave()
        return Ended(), ()

    def _prepare(self, request: PrepareCollectives) -> Prepared:
        framework = framework_class(request.framework)()
        self._rank = request.rank
        wanted = Settings(request.threads, device=request.device, rank=request.rank)
        self._collectives = framework.collectives(wanted, self._phase)
        return Prepared(framework.version(), dict(self._collectives.in_force), "")


class CollectivesOfRanks(Conductor):
    def reply(self, request: Request) -> tuple[Reply, tuple[()]]:
        self._phase.now = request.text
        if isinstance(request, PrepareCollectives):
            framework = framework_class(request.framework)
            if not framework.rank_launcher:
                raise Unsupported(f"{framework.name} has no way here to run as several processes")
            return self._launched(framework, request), ()
        if isinstance(request, TimeCollective):
            return self._timed(request), ()
        return self.quit(), ()

    def _timed(self, request: TimeCollective) -> CollectiveTimed:
        """Time all ranks' calls, whose number the conductor chooses from the time of a few."""
        ranks = self._running.count
        of_a_round = ranks if request.operation == "broadcast" else 1  # each rank is the root once
        first = self._of_all(
            msgspec.structs.replace(
                request, samples=_FIRST_SAMPLES, warmup=_FIRST_WARM_UP * of_a_round, calls_per_sample=of_a_round
            )
        )
        if first.why or first.wrong:
            return first
        again = max(_FIRST_SAMPLES, math.ceil(min(_SECOND_S * 1e9 / _median_ns(first) / of_a_round, _MOST_SAMPLES)))
        timed = self._of_all(
            msgspec.structs.replace(request, samples=again, calls_per_sample=of_a_round), _median_ns(first)
        )
        call_ns = _median_ns(timed)
        calls = of_a_round * max(1, math.ceil(_SHORTEST_SAMPLE_NS / (of_a_round * call_ns)))
        samples = min(max(_FEWEST_SAMPLES, round(request.seconds * 1e9 / (calls * call_ns))), _MOST_SAMPLES)
        return self._of_all(
            msgspec.structs.replace(request, samples=samples, warmup=_WARM_UP * of_a_round, calls_per_sample=calls),
            call_ns,
        )

    def _of_all(self, request: TimeCollective, call_ns: float = math.inf) -> CollectiveTimed:
        """Without the time of a call, the limit is that of any measurement."""
        expected_s = (request.samples * request.calls_per_sample + request.warmup) * call_ns / 1e9
        requests = [request] * self._running.count
        replies = self._asked_for(expected_s, requests, CollectiveTimed, request.operation)
        of_ranks = [reply for reply, _ in replies]
        failed = next((reply for reply in of_ranks if reply.why or reply.wrong), None)
        if failed is not None:
            return CollectiveTimed(why=failed.why, wrong=failed.wrong)
        return CollectiveTimed(tuple(map(float, np.max([reply.times_ns for reply in of_ranks], axis=0))))


def _median_ns(timed: CollectiveTimed) -> float:
    return max(float(np.median(timed.times_ns)), 1.0)

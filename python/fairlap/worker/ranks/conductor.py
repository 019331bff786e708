"""Conduct a contestant's ranks: start them, pass requests on to all of them, and answer as if they were one worker.

Steps that exchange something come to a standstill unless all ranks make equally many of them. So nothing is left to
each rank: the conductor chooses how many calls a measurement has, from the time of a few.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Framework, Unsupported
from fairlap.meters.memory import Memory
from fairlap.models.rank_parts import why_not_divided
from fairlap.models.registry import spec_at, spec_with
from fairlap.request.fields.scale import Rank
from fairlap.scenarios.asking import Prepared, Reply
from fairlap.scenarios.calls.latency_messages import Measure, Measured
from fairlap.scenarios.ranks.ranks_messages import PrepareCollectives, StepAlone, SteppedAlone
from fairlap.scenarios.untimed.profile_messages import Overhead, OverheadMeasured
from fairlap.worker.failure import FailedElsewhere
from fairlap.worker.guardian import RANKS_TOKEN
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import (
    Answer,
    Answered,
    Ended,
    Failed,
    Prepare,
    Quit,
    Request,
)
from fairlap.worker.ranks import lost, merging
from fairlap.worker.ranks.devices import OWN, RankDevices, devices_for
from fairlap.worker.ranks.launchers import Folders, Launching, NoLauncher, base_environment, launches
from fairlap.worker.ranks.placement import cores_for, draw_addresses, listener_for, places_of
from fairlap.worker.ranks.ranks import Ranks, TooLate, Trouble
from fairlap.worker.service import framework_class
from fairlap.worker.serving import over_http

LAUNCH = "launch"
_TRIES = 3  # with another port each
_FIRST_SAMPLES, _FIRST_WARM_UP = 5, 2
_SECOND_S = 0.05
_FEWEST_SAMPLES, _MOST_SAMPLES = 3, 2**20
_SHORTEST_SAMPLE_NS = 20e3  # of several calls, where a call is shorter
_WARM_UP_S = 0.15
_FEWEST_WARM_UP, _MOST_WARM_UP = 3, 10_000
_FEWEST_STEPS = 3
_SHORTEST_TURN_NS = 50e6  # of steps: the first ones after a change of turns are slower than those that follow
_QUIT_S = 20.0
_SHORTEST_LIMIT_S, _LIMIT_IN_EXPECTED = 60.0, 20.0

Merged = TypeVar("Merged", bound=Reply)


class Conductor:
    """Replies as :class:`fairlap.worker.service.Service` does."""

    def __init__(self, phase: Phases) -> None:
        self._phase = phase
        self._ranks: Ranks | None = None
        self._prepare: Prepare | PrepareCollectives | None = None
        self._call_ns: float | None = None
        self._devices = RankDevices()
        self._prepare_s = self._answer_s = 0.0  # that a rank took for it

    def reply(self, request: Request) -> tuple[Reply, Sequence[memoryview]]:
        """And the raw bytes that follow it."""
        self._phase.now = request.text
        match request:
            case Prepare():
                return self.prepare(request), ()
            case Answer():
                return self.answer(request), ()
            case Measure():
                return self.measure(request)
            case StepAlone():
                return self.step_alone(request), ()
            case Overhead():
                why = "a call of several ranks has no counterpart with nothing to compute"
                return OverheadMeasured(why=why), ()
            case Quit():
                return self.quit(), ()
        raise Unsupported(f"{request.text} is for one process; this contestant runs as several ranks")

    def prepare(self, request: Prepare) -> Prepared:
        framework = framework_class(request.framework)
        if why := _why_not(framework, request):
            raise Unsupported(why)
        if request.devices:
            assert request.scale is not None
            self._devices = devices_for(request.devices, places_of(request.scale.ranks, request.scale.hosts))
            request = msgspec.structs.replace(request, device=OWN, devices=())
        return self._launched(framework, request)

    def _launched(self, framework: type[Framework], request: Prepare | PrepareCollectives) -> Prepared:
        self._prepare = request
        for tries_left in reversed(range(_TRIES)):
            prepared = self._prepared(framework, request, tries_left)
            if prepared is not None:
                return prepared
        raise AssertionError("the last try reports its failure")

    def _prepared(
        self, framework: type[Framework], request: Prepare | PrepareCollectives, tries_left: int
    ) -> Prepared | None:
        """None where the port was taken and another one is to be tried."""
        assert request.scale is not None
        places = places_of(request.scale.ranks, request.scale.hosts)
        listener = listener_for(places)
        token = secrets.token_hex(16)
        folders = Folders(framework.rank_launcher, places)
        own = {RANKS_TOKEN: token, **folders.environment, **self._devices.environment}
        environment = {**base_environment(request.threads), **own}
        if isinstance(request, Prepare) and request.bind_ranks and all(place.is_here for place in places):
            environment |= cores_for(request.scale.ranks, request.threads, os.sched_getaffinity(0))
        addresses = draw_addresses(places)
        launching = Launching(places, listener.getsockname()[1], addresses, environment, request.files)
        count = launching.count
        try:
            self._phase.begin(LAUNCH)
            began_s = time.monotonic()
            ranks = self._ranks = Ranks(launches(framework.rank_launcher, launching), listener, token, count, folders)
            ranks.await_all(began_s + request.limits.start_s)
            self._phase.end(LAUNCH, time.monotonic() - began_s, "prepare")
            ranks.relay = self._phase.relay
            numbered = [Rank(number, count, addresses.coordinator, addresses.by_rank) for number in range(count)]
            ranks.send([msgspec.structs.replace(request, rank=rank) for rank in numbered])
            began_s = time.monotonic()
            replies = ranks.answers(Prepared, began_s + request.limits.prepare_s)
            self._prepare_s = time.monotonic() - began_s
        except NoLauncher as missing:
            folders.remove()
            raise FailedElsewhere(Failed(LAUNCH, "exception", str(missing), "", lost.E_RANK)) from None
        except OSError as error:
            folders.remove()
            text = f"{framework.rank_launcher} cannot be started: {error}"
            raise FailedElsewhere(Failed(LAUNCH, "exception", text, "", lost.E_RANK)) from None
        except Trouble:
            failed = lost.after_trouble(ranks, self._phase.now)
            was_taken = lost.port_was_taken(ranks)
            ranks.end()
            if not was_taken:
                raise FailedElsewhere(failed) from None
            if tries_left:
                return None
            text = f"the port of {addresses.coordinator}, where its ranks meet, is taken, as were {_TRIES - 1} others"
            raise FailedElsewhere(Failed(failed.phase, "exception", text, failed.traceback, lost.E_RANK)) from None
        except TooLate:
            within_s = request.limits.start_s if ranks.missing() else request.limits.prepare_s
            raise self._over(lost.after_deadline(ranks, "prepare", within_s)) from None
        self._phase.now = "prepare"
        hosts = [rank.join.host for rank in ranks.joined if rank.join is not None]
        return merging.merged_prepared([reply for reply, _ in replies], hosts, request)

    def answer(self, request: Answer) -> Answered:
        prepared = self._prepared_request
        parts = self._parts(request.path)
        requests = [msgspec.structs.replace(request, path=str(part)) for part in parts]
        began_s = time.monotonic()
        replies = [reply for reply, _ in self._asked(requests, Answered, "answer", prepared.limits.answer_s)]
        self._answer_s = max(self._answer_s, time.monotonic() - began_s)
        self._merge_files(parts, request.path)
        return merging.merged_answered(replies)

    def measure(self, request: Measure) -> tuple[Measured, list[memoryview]]:
        if self._call_ns is None:
            first_ns = self._time_of_a_call_ns(_FIRST_SAMPLES, _FIRST_WARM_UP, self._answer_s * 1e9)
            again = math.ceil(min(_SECOND_S * 1e9 / first_ns, _MOST_SAMPLES))
            self._call_ns = self._time_of_a_call_ns(max(again, _FIRST_SAMPLES), 0, first_ns)
        fixed = fixed_calls(request, self._call_ns)
        parts = self._parts(request.drawn_path) if request.drawn else []
        count = self._running.count
        requests = [
            msgspec.structs.replace(
                fixed,
                energy=request.energy if number == 0 and self._sees_all_energy else None,
                energy_of=self._devices.whole_gpus if number == 0 else "",
                drawn_path=str(parts[number]) if parts else "",
            )
            for number in range(count)
        ]
        measured, raw = self._measured(requests, self._call_ns)
        if parts:
            self._merge_files(parts, request.drawn_path)
        headline = np.frombuffer(raw[0], dtype="<f8")
        if np.isfinite(headline).any():
            self._call_ns = float(np.nanmedian(headline))
        return measured, raw

    def step_alone(self, request: StepAlone) -> SteppedAlone:
        steps = request.steps
        if not steps:
            of_a_turn_ns = max(request.seconds * 1e9 / max(2 * request.turns, 1), _SHORTEST_TURN_NS)
            steps = max(_FEWEST_STEPS, int(of_a_turn_ns / (self._call_ns or of_a_turn_ns)))
        fixed = msgspec.structs.replace(request, steps=steps)
        expected_s = self._prepare_s + 2 * request.turns * steps * (self._call_ns or 0.0) / 1e9
        replies = self._asked_for(expected_s, [fixed] * self._running.count, SteppedAlone, "step alone")
        return merging.merged_steps([reply for reply, _ in replies])

    def quit(self) -> Ended:
        if self._ranks is None:
            return Ended()
        replies = self._asked([Quit()] * self._running.count, Ended, "quit", _QUIT_S)
        memory: Sequence[Memory] = [reply.memory for reply, _ in replies]
        self._running.end()
        return Ended(merging.merged_memory(memory), tuple(memory))

    @property
    def _running(self) -> Ranks:
        if self._ranks is None:
            raise InvalidRequest("no contestant is prepared yet")
        return self._ranks

    @property
    def _prepared_request(self) -> Prepare | PrepareCollectives:
        assert self._prepare is not None
        return self._prepare

    @property
    def _sees_all_energy(self) -> bool:
        """Whether one rank can read the energy of all: on one host, and of GPUs that are known."""
        return self._on_one_host and (not self._devices.by_rank or bool(self._devices.whole_gpus))

    @property
    def _on_one_host(self) -> bool:
        return len(self._running.launched) == 1 or all(each.launch.place.is_here for each in self._running.launched)

    def _time_of_a_call_ns(self, samples: int, warmup: int, expected_ns: float) -> float:
        request = Measure(samples=samples, warmup=warmup, calls_per_sample=1)
        _, raw = self._measured([request] * self._running.count, expected_ns)
        return max(float(np.nanmedian(np.frombuffer(raw[0], dtype="<f8"))), 1.0)

    def _measured(self, requests: Sequence[Measure], call_ns: float) -> tuple[Measured, list[memoryview]]:
        """Drawn calls write their answers."""
        first = requests[0]
        calls = (first.warmup or 0) + (first.samples or 0) * (first.calls_per_sample or 1)
        expected_s = calls * call_ns / 1e9 + len(first.drawn) * self._answer_s
        return merging.merged_measured(self._asked_for(expected_s, requests, Measured, "measure"))

    def _asked_for(
        self, expected_s: float, requests: Sequence[Request], kind: type[Merged], doing: str
    ) -> list[tuple[Merged, bytes]]:
        """Ask for what should take so long: ranks that hang are not awaited as long as any measurement may take."""
        most_s = self._prepared_request.limits.measure_s
        return self._asked(requests, kind, doing, limit_s(expected_s, most_s), expected_s)

    def _asked(
        self,
        requests: Sequence[Request],
        kind: type[Merged],
        doing: str,
        within_s: float,
        expected_s: float = math.inf,
    ) -> list[tuple[Merged, bytes]]:
        ranks = self._running
        ranks.send(requests)
        try:
            return ranks.answers(kind, time.monotonic() + within_s)
        except Trouble:
            raise self._over(lost.after_trouble(ranks, doing)) from None
        except TooLate:
            raise self._over(lost.after_deadline(ranks, doing, within_s, expected_s)) from None

    def _over(self, failed: Failed) -> FailedElsewhere:
        """End what is left of the ranks."""
        self._running.end()
        return FailedElsewhere(failed)

    def _parts(self, path: str) -> list[Path]:
        return [Path(f"{path}.rank-{number}") for number in range(self._running.count)]

    def _merge_files(self, parts: Sequence[Path], path: str) -> None:
        for rank, part in zip(self._running.joined, parts, strict=True):
            if not part.exists():
                text = f"what {rank.name} wrote to {part} is not here: hosts must see the same files"
                raise FailedElsewhere(Failed(self._phase.now, "exception", text, "", lost.E_HOST))
        prepared = self._prepared_request
        assert isinstance(prepared, Prepare)
        merging.merge_files(parts, Path(path), prepared.mode)


def limit_s(expected_s: float, most_s: float) -> float:
    """Generous: a rank that a busy machine slows down is not lost, one that hangs never ends."""
    return min(max(_SHORTEST_LIMIT_S, _LIMIT_IN_EXPECTED * expected_s), most_s)


def fixed_calls(request: Measure, call_ns: float) -> Measure:
    """Fix a number of calls instead of a time for the same measurement."""
    calls = request.calls_per_sample or max(1, math.ceil(_SHORTEST_SAMPLE_NS / call_ns))
    samples = _MOST_SAMPLES if request.samples is None else request.samples
    if request.seconds is not None:
        samples = min(samples, max(_FEWEST_SAMPLES, round(request.seconds * 1e9 / (calls * call_ns))))
    warmup = request.warmup
    if warmup is None:
        warmup = min(max(_FEWEST_WARM_UP, round(_WARM_UP_S * 1e9 / call_ns)), _MOST_WARM_UP)
    return msgspec.structs.replace(request, seconds=None, samples=samples, warmup=warmup, calls_per_sample=calls)


def _why_not(framework: type[Framework], request: Prepare) -> str:
    scale = request.scale
    assert scale is not None
    if not framework.rank_launcher:
        return f"{framework.name} has no way here to share its steps among processes"
    if over_http.OPTION in request.options:
        return "a contestant behind a server does not run as ranks"
    if request.free_sizes:
        spec = spec_with(request.workload, request.free_sizes)
    else:
        spec = spec_at(request.workload, request.sizes)
    if spec.continuation:
        return "ranks share steps of training or batches of inference, not the tokens of an answer"
    return why_not_divided(spec, request.mode, request.batch, scale.ranks)

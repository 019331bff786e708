"""How a worker serves its requests: load a contestant, let it answer, measure it, and drop it for the next one."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Contestant, Framework, Settings, Unsupported, device_number
from fairlap.frameworks.contract_parts.work_place import WHERE_WORK_IS
from fairlap.meters.memory import MemoryMeter
from fairlap.request.fields.training import STEPS_OF_AN_ANSWER
from fairlap.scenarios.asking import Prepared, Reply, at
from fairlap.scenarios.held import Held, write_arrays
from fairlap.worker.padded_calls import padded, require_sizes
from fairlap.worker.phases import OURS, Phases
from fairlap.worker.process_options import process_options_in, settings_in
from fairlap.worker.protocol import Answer, Answered, Drop, Dropped, Ended, Prepare, Quit, Request
from fairlap.worker.ranks.devices import device_in_force
from fairlap.worker.ranks.placement import cores_of
from fairlap.worker.serving import over_http
from fairlap.worker.slowdown import slowed

if TYPE_CHECKING:
    from fairlap.models.arrays import Arrays
    from fairlap.models.sources.contract import Route
    from fairlap.models.workload import Workload

FIRST_CALL = "first_call"


class Service:
    """Serves one contestant in this process, or several one after the other."""

    def __init__(self, phase: Phases, confinement: dict[str, str] | None = None) -> None:
        self._phase = phase
        self._confinement = confinement or {}  # in force since before this module was imported
        self._held: Held | None = None
        self._was_called = False
        self._part: Callable[[Arrays], Arrays] | None = None  # of a rank

    def reply(self, request: Request) -> tuple[Reply, Sequence[memoryview]]:
        """And the raw bytes that follow it."""
        self._phase.now = request.text
        match request:
            case Prepare():
                return self.prepare(request), ()
            case Answer():
                return self.answer(request), ()
            case Drop():
                return self.drop(), ()
            case Quit():
                return self.quit(), ()
        return served(self.held, request)

    @property
    def held(self) -> Held:
        if self._held is None:
            raise InvalidRequest("no contestant is prepared yet")
        return self._held

    def prepare(self, request: Prepare) -> Prepared:
        if request.sandbox is not None and not self._confinement:
            raise RuntimeError("a worker enters its sandbox before anything is imported")
        with self._phase(OURS):
            memory = MemoryMeter(request.device)
            from fairlap.engine import measure  # noqa: F401  (loaded here, so that it does not count as the first call)
            from fairlap.models.arrays import hash_of
            from fairlap.worker.work_files import part_of_rank, workload_of

            framework = framework_class(request.framework)()
            _require_support(framework, request)
            require_sizes(request.options, request.padded)
            work, sets = workload_of(request)
            route = _route_of(framework, request)
            of_process = process_options_in(request.options).in_force() | self._confinement
        if over_http.OPTION in request.options:
            return self._prepare_server(request, work, sets, memory)
        settings, slowdown = settings_in(request)

        def prepared(work: Workload, wanted: Settings = settings) -> Contestant:
            contestant = padded(framework.prepare(work, wanted, self._phase), work)
            contestant = slowed(contestant, slowdown, request.device)
            if request.device == "cpu":
                return contestant
            from fairlap.scenarios.device_quantities import with_completion

            return with_completion(contestant, device_number(request.device))

        contestant = prepared(work)
        memory.prepared(WHERE_WORK_IS[contestant.work_in])
        self._phase.now = "reading back"
        self._part = part_of_rank(request)
        alone = replace(settings, rank=None)
        self._hold(request, contestant, sets, memory, prepared, lambda work: prepared(work, alone))
        weights = contestant.weights() if route is None or route.holds_weights else {}
        quantization = contestant.quantization
        brought = _brought(framework, request) if route is None else route.name
        names = [each for each in (brought, "" if quantization is None else quantization.name) if each]
        seconds = [_conversion_s(route), None if quantization is None else quantization.seconds]
        known_s = [each for each in seconds if each is not None]
        return Prepared(
            framework.version(),
            {**contestant.in_force, **of_process, **_of_rank(request)},
            hash_of(weights) if weights else "",
            "; ".join(names),
            sum(known_s) if known_s else None,
            contestant.work_in,
        )

    def _prepare_server(
        self, request: Prepare, work: Workload, sets: Sequence[Arrays], memory: MemoryMeter
    ) -> Prepared:
        """Load the model in a server; what is called here is a client."""
        server = over_http.OwnServer(request, self._phase)
        contestant = server.contestant(work)
        memory.prepared(WHERE_WORK_IS[contestant.work_in])
        self._hold(request, contestant, sets, memory, server.contestant, server.contestant)
        return structs.replace(server.prepared, in_force=dict(contestant.in_force), work_in=contestant.work_in)

    def _hold(
        self,
        request: Prepare,
        contestant: Contestant,
        sets: Sequence[Arrays],
        memory: MemoryMeter,
        build: Callable[[Workload], Contestant],
        build_alone: Callable[[Workload], Contestant],
    ) -> None:
        from fairlap.scenarios.calls.timed_inputs import TimedInputs
        from fairlap.worker.work_files import workload_of

        self._held = Held(
            framework_class(request.framework),
            contestant,
            settings_in(request)[0],
            request.options,
            request.batch,
            request.mode,
            request.precision,
            sets,
            request.unseen,
            TimedInputs(contestant, sets, request.unseen, self._part),
            self._phase,
            memory,
            build,
            build_alone,
            lambda: workload_of(request),
        )

    def answer(self, request: Answer) -> Answered:
        contestant = self.held.contestant
        if request.which == "fed":
            return self._fed_answer(request)
        if request.which == "data":
            return self._data_answer(request, contestant)
        is_first = not self._was_called
        if is_first:
            self.held.memory.before_first_call()
        bound = self._bound(request.which == "changed")
        if contestant.training is not None:
            contestant.training.reset()
        result, seconds, _ = self._call_once(bound, contestant)
        if contestant.training is not None:
            result = self._further_steps(request.which == "changed", contestant)
        if is_first:
            self.held.memory.ready(contestant)
        from fairlap.scenarios.reading import read_result

        state = {} if contestant.training is None else contestant.training.read()
        arrays, reading = read_result(contestant, None if self._part else bound, result, seconds)
        write_arrays(request.path, {**arrays, **state})
        return Answered(seconds, reading)

    def _data_answer(self, request: Answer, contestant: Contestant) -> Answered:
        """To inputs that are used once, outside of every measurement."""
        from fairlap.models.array_files import safetensors

        inputs: Arrays = safetensors.read(Path(request.inputs))
        bound = contestant.bind(inputs if self._part is None else self._part(inputs))
        result, seconds, cpu_s = self._call_once(bound, contestant)
        write_arrays(request.path, contestant.outputs(result))
        return Answered(seconds, cpu_s=cpu_s)

    def _further_steps(self, changed: bool, contestant: Contestant) -> Any:
        """After the first step of an answer; the result of the last one."""
        result = None
        for step in self.held.timed.steps(int(changed), STEPS_OF_AN_ANSWER)[1:]:
            result = step()
            if contestant.done is not None:
                contestant.done(result)
        return result

    def _fed_answer(self, request: Answer) -> Answered:
        if self.held.fed is None:
            raise InvalidRequest("no pipeline feeds this worker yet")
        began_ns = time.perf_counter_ns()
        answer = self.held.fed.answer()
        seconds = (time.perf_counter_ns() - began_ns) / 1e9
        write_arrays(request.path, answer)
        return Answered(seconds)

    def drop(self) -> Dropped:
        """Keep nothing of the contestant but what its framework holds for the process.

        What is left then is set apart, so that the next collection looks at its own contestant alone: looking at all
        of PyTorch's modules takes a tenth of a second. No collection runs while calls are timed.
        """
        framework, memory = self.held.framework, self.quit().memory
        self._held, self._part, self._was_called = None, None, False
        framework.forget()
        gc.collect()
        gc.freeze()
        return Dropped(memory)

    def quit(self) -> Ended:
        held = self._held
        if held is None:
            return Ended(MemoryMeter("cpu").result())
        if held.fed is not None:
            held.fed.close()
        memory = held.memory_at_the_end()
        if held.contestant.leave is not None:
            held.contestant.leave()
        return Ended(memory)

    def _bound(self, changed: bool) -> Callable[[], Any]:
        if changed:
            return self.held.timed.bound(1)
        with self._phase("bind") if not self._was_called else nullcontext():
            return self.held.timed.bound(0)

    def _call_once(self, bound: Callable[[], Any], contestant: Contestant) -> tuple[Any, float, float | None]:
        """Time one completed call on the engine's clock, and the CPU. The first of the process is a separate phase."""
        from fairlap import engine

        results: list[Any] = []

        def call() -> Any:
            try:
                results.append(bound())
            except Exception:
                raise  # so that the traceback contains this frame
            return results[0]

        before = "" if self._was_called else self._phase.begin(FIRST_CALL)
        once = engine.time_calls(call, done=contestant.done, samples=1, warmup=0, calls_per_sample=1)
        if once.interrupted:
            raise KeyboardInterrupt
        seconds = float(once.wall_ns[0]) / 1e9
        if not self._was_called:
            self._phase.end(FIRST_CALL, seconds, before)
            self._was_called = True
        cpu_ns = once.counts.get("process_cpu_ns")
        return results[0], seconds, None if cpu_ns is None else cpu_ns / 1e9


def served(held: Held, request: Request) -> tuple[Reply, Sequence[memoryview]]:
    """By the function that the request names, which belongs to its scenario."""
    if not request.served_by:
        raise Unsupported(f"{request.text} is for ranks; this contestant is one process")
    reply: tuple[Reply, Sequence[memoryview]] = at(request.served_by)(held, request)
    return reply


def framework_class(name: str) -> type[Framework]:
    """By its registered name, or as "module:Class"."""
    from fairlap.frameworks.registry import framework_at, framework_named

    if ":" not in name:
        return framework_named(name)
    return framework_at(name)


def _of_rank(request: Prepare) -> dict[str, str]:
    """Read back the cores that a rank is bound to, and its GPU, where it has some."""
    if request.rank is None:
        return {}
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    return ({"cores": cores} if cores_of(request.rank.number) else {}) | device_in_force(request.rank.number)


def _route_of(framework: Framework, request: Prepare) -> Route | None:
    """How a user's model gets into this framework; None for a model that has an implementation for it."""
    if not request.workload.startswith("/") or framework.has_own_model:
        return None
    from fairlap.models.sources.bundle import bundle_in, route_to

    bundle = bundle_in(Path(request.workload))
    route = route_to(bundle, framework.name, framework.implementation)
    if why := route.why_not_in(request.precision, request.mode):
        raise Unsupported(f"{framework.name} cannot run {bundle.source.text}: {why}")
    return route


def _brought(framework: Framework, request: Prepare) -> str:
    from fairlap.models.registry import route_at

    return "" if framework.has_own_model else route_at(request.workload, framework.implementation or framework.name)


def _conversion_s(route: Route | None) -> float | None:
    if route is None:
        return None
    from fairlap.models.sources.bundle import conversion_s

    return conversion_s(route)


def _require_support(framework: Framework, request: Prepare) -> None:
    for what, value, known in (
        ("variant", request.variant, framework.variants),
        ("mode", request.mode, framework.modes),
    ):
        if value not in known:
            listed = ", ".join(each or "(none)" for each in known)
            raise Unsupported(f"{framework.name} has no {what} {value}; it has {listed}")
    if why := framework.why_not_in(request.precision):
        raise Unsupported(why)

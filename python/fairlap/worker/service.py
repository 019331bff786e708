"""How a worker serves its requests: load one contestant, let it answer, measure it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from fairlap.data.pipeline_choice import choice_in
from fairlap.errors import InvalidRequest, described
from fairlap.frameworks.contract import Contestant, Framework, Unsupported, device_number
from fairlap.frameworks.work_place import WHERE_WORK_IS
from fairlap.meters.memory import Memory, MemoryMeter
from fairlap.request.training import STEPS_OF_AN_ANSWER
from fairlap.scenarios import latency
from fairlap.scenarios.latency_messages import Drawn, Fed, Feed, Measure, Measured
from fairlap.scenarios.load.load_messages import LoadTrial, OfferLoad
from fairlap.scenarios.load.loadgen_messages import LoadGenResult, LoadGenRun
from fairlap.scenarios.ranks_messages import StepAlone, SteppedAlone
from fairlap.scenarios.training_messages import Epoch, EpochTrained, Restore, Restored
from fairlap.scenarios.untimed.compilation_messages import Describe, Described, Resize, Resized
from fairlap.scenarios.untimed.profile_messages import ProfileCalls, Profiled
from fairlap.worker import over_http
from fairlap.worker.phases import OURS, Phases
from fairlap.worker.process_options import process_options_in, settings_in
from fairlap.worker.protocol import Answer, Answered, Ended, OverheadMeasured, Prepare, Prepared
from fairlap.worker.ranks.own_cores import cores_of
from fairlap.worker.slowdown import slowed

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.models.arrays import Arrays
    from fairlap.models.sources.contract import Route
    from fairlap.models.workload import Workload
    from fairlap.scenarios.fed_latency import FedCalls
    from fairlap.scenarios.load.serving import Serving
    from fairlap.scenarios.timed_inputs import TimedInputs
    from fairlap.scenarios.training import Epochs
    from fairlap.scenarios.untimed.compilation import CompilationCalls

FIRST_CALL = "first_call"


class Service:
    """Serves one contestant in this process."""

    def __init__(self, phase: Phases, confinement: dict[str, str] | None = None) -> None:
        self._phase = phase
        self._confinement = confinement or {}  # in force since before this module was imported
        self._contestant: Contestant | None = None
        self._sets: list[Arrays] = []
        self._timed: TimedInputs | None = None
        self._was_called = False
        self._device = "cpu"
        self._memory = MemoryMeter(self._device)
        self._loaded: Prepare | None = None
        self._fed: FedCalls | None = None
        self._epochs: Epochs | None = None
        self._was_profiled = False
        self._memory_before_second: Memory | None = None
        self._build: Callable[[Workload], Contestant] | None = None
        self._compilation: CompilationCalls | None = None
        self._serving: Serving | None = None
        self._part: Callable[[Arrays], Arrays] | None = None  # of a rank

    def prepare(self, request: Prepare) -> Prepared:
        self._phase.now = "prepare"
        if request.sandbox is not None and not self._confinement:
            raise RuntimeError("a worker enters its sandbox before anything is imported")
        with self._phase(OURS):
            self._device = request.device
            self._memory = MemoryMeter(self._device)
            from fairlap.engine import measure  # noqa: F401  (loaded here, so that it does not count as the first call)
            from fairlap.models.arrays import hash_of
            from fairlap.scenarios.timed_inputs import TimedInputs
            from fairlap.worker.work_files import part_of_rank, workload_of

            framework = framework_class(request.framework)()
            _require_support(framework, request)
            work, self._sets = workload_of(request)
            route = _route_of(framework, request)
            of_process = process_options_in(request.options).in_force() | self._confinement
        self._loaded = request
        if over_http.OPTION in request.options:
            return self._prepare_server(request, work)
        settings, slowdown = settings_in(request)

        def prepared(work: Workload) -> Contestant:
            contestant = slowed(framework.prepare(work, settings, self._phase), slowdown, request.device)
            if request.device == "cpu":
                return contestant
            from fairlap.scenarios.device_quantities import with_completion

            return with_completion(contestant, device_number(request.device))

        contestant = prepared(work)
        self._memory.prepared(_elsewhere(contestant))
        self._phase.now = "reading back"
        self._contestant, self._build = contestant, prepared
        self._part = part_of_rank(request)
        self._timed = TimedInputs(contestant, self._sets, request.unseen, self._part)
        weights = contestant.weights() if route is None or route.holds_weights else {}
        quantization = contestant.quantization
        names = ([] if route is None else [route.name]) + ([] if quantization is None else [quantization.name])
        seconds = [_conversion_s(route), None if quantization is None else quantization.seconds]
        known_s = [each for each in seconds if each is not None]
        return Prepared(
            framework.version(),
            {**contestant.in_force, **of_process, **_own_cores(request)},
            hash_of(weights) if weights else "",
            "; ".join(names),
            sum(known_s) if known_s else None,
            contestant.work_in,
        )

    def _prepare_server(self, request: Prepare, work: Workload) -> Prepared:
        """The model is loaded by a server, and what is called here is a client."""
        from fairlap.scenarios.timed_inputs import TimedInputs

        server = over_http.OwnServer(request, self._phase)
        contestant, self._build = server.contestant(work), server.contestant
        self._contestant = contestant
        self._memory.prepared(_elsewhere(contestant))
        self._timed = TimedInputs(contestant, self._sets, request.unseen)
        return structs.replace(server.prepared, in_force=dict(contestant.in_force), work_in=contestant.work_in)

    @property
    def contestant(self) -> Contestant:
        """The prepared one."""
        if self._contestant is None:
            raise InvalidRequest("no contestant is prepared yet")
        return self._contestant

    def answer(self, request: Answer) -> Answered:
        self._phase.now = "answer"
        contestant = self.contestant
        if request.which == "fed":
            return self._fed_answer(request)
        if request.which == "data":
            return self._data_answer(request, contestant)
        is_first = not self._was_called
        if is_first:
            self._memory.before_first_call()
        bound = self._bound(request.which == "changed")
        if contestant.training is not None:
            contestant.training.reset()
        result, seconds = self._call_once(bound, contestant)
        if contestant.training is not None:
            result = self._further_steps(request.which == "changed", contestant)
        if is_first:
            self._memory.ready(contestant)
        from fairlap.scenarios.reading import read_result

        state = {} if contestant.training is None else contestant.training.read()
        arrays, reading = read_result(contestant, None if self._part else bound, result, seconds)
        _write(request.path, {**arrays, **state})
        return Answered(seconds, reading)

    def _data_answer(self, request: Answer, contestant: Contestant) -> Answered:
        """To inputs that are used once, outside of every measurement."""
        from fairlap.models import safetensors

        inputs: Arrays = safetensors.read(Path(request.inputs))
        bound = contestant.bind(inputs if self._part is None else self._part(inputs))
        result, seconds = self._call_once(bound, contestant)
        _write(request.path, contestant.outputs(result))
        return Answered(seconds)

    def measure(self, request: Measure) -> tuple[Measured, list[memoryview]]:
        self._phase.now = "measure"
        self._require_unprofiled()
        contestant = self.contestant
        timed, fed = self._timed, self._fed
        assert timed is not None
        drawn: Drawn = Drawn()
        dealt = request.deal is not None and fed is None and self._deal(request.deal)

        def take() -> Measurement:
            nonlocal drawn
            if fed is not None:
                return fed.measure(request)
            measurement, drawn = timed.measure(request)
            return measurement

        self._memory.before_running(contestant)
        measurement, energy = latency.with_energy(take, self._device) if request.energy else (take(), None)
        self._memory.ran(contestant)
        if measurement.interrupted:
            raise KeyboardInterrupt
        on_device = None
        if contestant.device is not None and fed is None:
            on_device = timed.measure_device(request, measurement.calls_per_sample)
        feeding = None if fed is None else fed.feeding
        return latency.measured_message(measurement, drawn, energy, feeding, on_device, dealt=dealt)

    def _deal(self, seed: int) -> bool:
        """What it holds is held twice meanwhile, so the memory is read before."""
        assert self._timed is not None
        if self._memory_before_second is None:
            self._memory_before_second = self._memory.result()
        return self._timed.deal(seed)

    def offer_load(self, request: OfferLoad) -> tuple[LoadTrial, list[memoryview]]:
        self._phase.now = request.text
        with self._phase.unreported():
            return self._served().serve(request)

    def run_loadgen(self, request: LoadGenRun) -> LoadGenResult:
        self._phase.now = request.text
        with self._phase.unreported():
            return self._served().run_loadgen(request)

    def _served(self) -> Serving:
        from fairlap.scenarios.load.serving import Serving
        from fairlap.worker.work_files import workload_of

        self._require_unprofiled()
        if self._serving is None:
            contestant, loaded, build = self.contestant, self._loaded, self._build
            assert loaded is not None
            assert build is not None
            self._serving = Serving(contestant, workload_of(loaded)[0], self._sets, loaded.unseen, build)
        return self._serving

    def train(self, request: Epoch) -> EpochTrained:
        self._phase.now = request.text
        self._require_unprofiled()
        return self._training().train(request)

    def restore(self, request: Restore) -> Restored:
        self._phase.now = "restore"
        return self._training().restore(request)

    def profile(self, request: ProfileCalls) -> Profiled:
        from fairlap.scenarios.untimed.profile import profiled

        self._phase.now = "profile"
        contestant, loaded = self.contestant, self._loaded
        assert loaded is not None
        if why := _elsewhere(contestant):
            raise Unsupported(f"{why}, and no profiler sees it")
        if contestant.profiler is None:
            name = framework_class(loaded.framework).name
            raise Unsupported(
                f"fairlap reads no profiler of {name}{f' in mode {loaded.mode}' * (loaded.mode != 'infer')}"
            )
        self._was_profiled = True
        if contestant.training is not None:
            contestant.training.reset()
        return profiled(contestant, self._sets[0], request)

    def _require_unprofiled(self) -> None:
        """Profilers slow down what they see, and leave hooks behind."""
        if self._was_profiled:
            raise InvalidRequest("a profiler ran in this process, so nothing in it is timed any more")

    def describe(self, _request: Describe) -> Described:
        self._phase.now = "describe"
        return self._compilation_calls().describe()

    def resize(self, request: Resize) -> Resized:
        self._phase.now = "resize"
        return self._compilation_calls().resize(request)

    def _compilation_calls(self) -> CompilationCalls:
        """With a work that is read again: a process that is raced does not hold one for this."""
        from fairlap.scenarios.untimed.compilation import CompilationCalls
        from fairlap.worker.work_files import workload_of

        if why := _elsewhere(self.contestant):
            raise Unsupported(f"{why}, and what was compiled there is not known")
        if self._compilation is None:
            contestant, loaded, build = self.contestant, self._loaded, self._build
            assert loaded is not None
            assert build is not None
            self._compilation = CompilationCalls(contestant, workload_of(loaded)[0], build)
        return self._compilation

    def _training(self) -> Epochs:
        from fairlap.scenarios.training import Epochs

        if self._epochs is None:
            contestant, loaded = self.contestant, self._loaded
            assert loaded is not None
            self._epochs = Epochs(contestant, loaded.batch, self._device)
        return self._epochs

    def feed(self, request: Feed) -> Fed:
        from fairlap.scenarios.fed_latency import FedCalls, fed_of

        self._phase.now = "feed"
        contestant, loaded = self.contestant, self._loaded
        assert loaded is not None
        name = framework_class(loaded.framework).name
        calls = FedCalls(contestant, fed_of(contestant, name), choice_in(loaded.options, name), request, loaded.batch)
        with self._phase("proof"):
            _write(request.path, calls.proof())
        self._fed = calls
        return Fed(calls.open())

    def _further_steps(self, changed: bool, contestant: Contestant) -> Any:
        """After the first step of an answer; the result of the last one."""
        assert self._timed is not None
        result = None
        for step in self._timed.steps(int(changed), STEPS_OF_AN_ANSWER)[1:]:
            result = step()
            if contestant.done is not None:
                contestant.done(result)
        return result

    def _fed_answer(self, request: Answer) -> Answered:
        if self._fed is None:
            raise InvalidRequest("no pipeline feeds this worker yet")
        began_ns = time.perf_counter_ns()
        answer = self._fed.answer()
        seconds = (time.perf_counter_ns() - began_ns) / 1e9
        _write(request.path, answer)
        return Answered(seconds)

    def quit(self) -> Ended:
        self._phase.now = "quit"
        if self._fed is not None:
            self._fed.close()
        memory = self._memory_before_second or self._memory.result()
        if self._contestant is not None and self._contestant.leave is not None:
            self._contestant.leave()
        return Ended(memory)

    def overhead(self) -> OverheadMeasured:
        """A second contestant in this process, so the memory is read before. Whatever it raises is the reason why its
        time is unknown: all that was asked for has been measured."""
        self._phase.now = "overhead"
        loaded = self._loaded
        assert loaded is not None
        self._memory_before_second = self._memory_before_second or self._memory.result()
        from fairlap.scenarios.untimed.overhead import overhead_of_a_call_ns

        if why := _elsewhere(self.contestant):
            return OverheadMeasured(why=why)
        try:
            framework = framework_class(loaded.framework)()
            return OverheadMeasured(overhead_of_a_call_ns(framework, settings_in(loaded)[0], loaded.precision))
        except (Exception, SystemExit) as error:
            return OverheadMeasured(why=described(error))

    def step_alone(self, request: StepAlone) -> SteppedAlone:
        """A second contestant in this process, as in ``overhead``. All ranks must get through it, or none."""
        from fairlap.scenarios.steps_alone import stepped_alone
        from fairlap.worker.work_files import workload_of

        self._phase.now = "step_alone"
        loaded = self._loaded
        assert loaded is not None
        if loaded.rank is None:
            raise Unsupported("it is no rank: all of its steps are alone")
        self._memory_before_second = self._memory_before_second or self._memory.result()
        settings, slowdown = settings_in(loaded)
        work, sets = workload_of(loaded)
        framework = framework_class(loaded.framework)()
        with self._phase.unreported():
            alone = slowed(framework.prepare(work, replace(settings, rank=None), self._phase), slowdown, loaded.device)
        if loaded.device != "cpu":
            from fairlap.scenarios.device_quantities import with_completion

            alone = with_completion(alone, device_number(loaded.device))
        return stepped_alone(self.contestant, alone, sets, request)

    def _bound(self, changed: bool) -> Callable[[], Any]:
        assert self._timed is not None
        if changed:
            return self._timed.bound(1)
        with self._phase("bind") if not self._was_called else nullcontext():
            return self._timed.bound(0)

    def _call_once(self, bound: Callable[[], Any], contestant: Contestant) -> tuple[Any, float]:
        """Time one completed call on the engine's clock. The first one of the process is a separate phase."""
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
        return results[0], seconds


def _elsewhere(contestant: Contestant) -> str:
    """Why what is seen of this process is not seen of the work."""
    return WHERE_WORK_IS[contestant.work_in]


def _write(path: str, arrays: Mapping[str, Any]) -> None:
    from fairlap.models import safetensors

    safetensors.write(Path(path), arrays)


def framework_class(name: str) -> type[Framework]:
    """By its registered name, or as "module:Class"."""
    from fairlap.frameworks.registry import framework_at, framework_named

    if ":" not in name:
        return framework_named(name)
    return framework_at(name)


def _own_cores(request: Prepare) -> dict[str, str]:
    """Of a rank that is bound to some, read back."""
    if request.rank is None or not cores_of(request.rank.number):
        return {}
    return {"cores": ",".join(map(str, sorted(os.sched_getaffinity(0))))}


def _route_of(framework: Framework, request: Prepare) -> Route | None:
    """How a user's model gets into this framework; None for a model that has an implementation for it."""
    if not request.workload.startswith("/") or framework.has_own_model:
        return None
    from fairlap.models.sources.bundle import bundle_in, route_to

    bundle = bundle_in(Path(request.workload))
    route = route_to(bundle, framework.name, framework.implementation)
    if why := route.why_not_in(request.precision):
        raise Unsupported(f"{framework.name} cannot run {bundle.source.text}: {why}")
    return route


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

"""What a worker does between its first word and its last: load one contestant, let it answer, measure it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.data.pipeline_choice import choice_in, without_choice
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Contestant, Framework, Settings, Unsupported
from fairlap.meters.memory import MemoryByLayer
from fairlap.worker.phases import OURS, Phases
from fairlap.worker.protocol import Answer, Answered, Bye, Fed, Feed, Measure, Prepare, Prepared
from fairlap.worker.slowdown import slowdown_in, slowed

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.meters.energy import Meter
    from fairlap.meters.energy_readings import EnergyOfBlock
    from fairlap.models.workload import Arrays, Workload
    from fairlap.worker.fed_calls import FedCalls

LABELS = "labels"
FIRST_CALL = "first_call"


class Service:
    """Serves one contestant in this process."""

    def __init__(self, phase: Phases) -> None:
        self._phase = phase
        self._contestant: Contestant | None = None
        self._inputs: dict[str, Arrays] = {}
        self._bound: Callable[[], Any] | None = None
        self._was_called = False
        self._device = "cpu"
        self._memory = MemoryByLayer(self._device)
        self._wanted: Prepare | None = None
        self._fed: FedCalls | None = None

    def prepare(self, wanted: Prepare) -> Prepared:
        self._phase.now = "prepare"
        with self._phase(OURS):
            self._device = wanted.device
            self._memory = MemoryByLayer(self._device)
            from fairlap.engine import measure  # noqa: F401  (loaded here rather than before the first call)
            from fairlap.models.workload import hash_of

            framework = framework_class(wanted.framework)()
            _require_support(framework, wanted)
            work = self._workload(wanted)
        self._wanted = wanted
        options = without_choice(wanted.options)
        slowdown = slowdown_in(options)
        settings = Settings(wanted.threads, wanted.variant, wanted.device, options, wanted.device_memory_limit_bytes)
        contestant = slowed(framework.prepare(work, settings, self._phase), slowdown)
        self._memory.prepared()
        self._phase.now = "reading back"
        self._contestant = contestant
        loaded = contestant.weights()
        return Prepared(framework.version(), dict(contestant.in_force), hash_of(loaded) if loaded else "")

    def answer(self, wanted: Answer) -> Answered:
        self._phase.now = "answer"
        contestant = self._prepared()
        if wanted.which == "fed":
            return self._fed_answer(wanted)
        is_first = not self._was_called
        if is_first:
            self._memory.before_first_call()
        bound = self._measured_call() if wanted.which == "inputs" else contestant.bind(self._inputs[wanted.which])
        result, seconds = self._call_once(bound, contestant)
        if is_first:
            self._memory.ready(contestant)
        from fairlap.models import safetensors

        safetensors.write(Path(wanted.path), contestant.outputs(result))
        return Answered(seconds)

    def measure(self, wanted: Measure) -> tuple[Measurement, EnergyOfBlock | None]:
        self._phase.now = "measure"
        contestant = self._prepared()
        measured_by = self._fed.measure if self._fed else partial(self._measured, contestant, self._measured_call())
        meter = self._meter() if wanted.energy else None
        self._memory.before_running(contestant)
        begin_ns = 0 if meter is None else meter.begin()
        measured = measured_by(wanted)
        end_ns = 0 if meter is None else meter.end()
        self._memory.ran(contestant)
        if measured.interrupted:
            raise KeyboardInterrupt
        return measured, None if meter is None else _energy(meter, measured, begin_ns, end_ns)

    def _measured(self, contestant: Contestant, bound: Callable[[], Any], wanted: Measure) -> Measurement:
        from fairlap import engine

        method: dict[str, Any] = {} if contestant.method is None else {"method": contestant.method}
        return engine.measure(
            bound,
            done=contestant.done,
            stream=contestant.stream,
            **method,
            seconds=wanted.seconds,
            samples=wanted.samples,
            warmup="auto" if wanted.warmup is None else wanted.warmup,
            calls_per_sample="auto" if wanted.calls_per_sample is None else wanted.calls_per_sample,
        )

    def _meter(self) -> Meter | None:
        """None where this process finds no sensor, whatever its parent found."""
        from fairlap.meters.energy import Meter

        meter = Meter(self._device)
        return meter if meter.sensors else None

    def feed(self, wanted: Feed) -> Fed:
        from fairlap.worker.fed_calls import FedCalls, fed_of

        self._phase.now = "feed"
        contestant, asked = self._prepared(), self._wanted
        assert asked is not None
        name = framework_class(asked.framework).name
        calls = FedCalls(contestant, fed_of(contestant, name), choice_in(asked.options, name), wanted, asked.batch)
        with self._phase("proof"):
            _write(wanted.path, calls.proof())
        self._fed = calls
        return Fed(calls.open())

    def feeding(self) -> dict[str, float]:
        """Of the calls that were measured; empty when they were not fed."""
        return {} if self._fed is None else self._fed.feeding

    def _fed_answer(self, wanted: Answer) -> Answered:
        if self._fed is None:
            raise InvalidRequest("nothing is fed yet")
        began_ns = time.perf_counter_ns()
        answer = self._fed.answer()
        seconds = (time.perf_counter_ns() - began_ns) / 1e9
        _write(wanted.path, answer)
        return Answered(seconds)

    def quit(self) -> Bye:
        self._phase.now = "quit"
        if self._fed is not None:
            self._fed.close()
        memory, absent = self._memory.told()
        return Bye(memory, absent)

    def _workload(self, wanted: Prepare) -> Workload:
        from fairlap.models import safetensors
        from fairlap.models.workload import Workload

        spec = import_module(f"{wanted.workload}.spec").SPEC
        weights = safetensors.read(Path(wanted.weights))
        names = [tensor.name for tensor in spec.inputs]
        for which, file in (("inputs", wanted.inputs), ("changed", wanted.changed)):
            arrays = safetensors.read(Path(file))
            self._inputs[which] = {name: arrays[name] for name in names}
        labels = None if wanted.labels is None else safetensors.read(Path(wanted.labels))[LABELS]
        return Workload(
            spec,
            wanted.workload,
            wanted.batch,
            wanted.mode,
            wanted.precision,
            weights,
            self._inputs["inputs"],
            labels,
        )

    def _prepared(self) -> Contestant:
        if self._contestant is None:
            raise InvalidRequest("nothing is prepared yet")
        return self._contestant

    def _measured_call(self) -> Callable[[], Any]:
        """Bound once: what answers before and after is the very callable that is measured."""
        if self._bound is None:
            with self._phase("bind"):
                self._bound = self._prepared().bind(self._inputs["inputs"])
        return self._bound

    def _call_once(self, bound: Callable[[], Any], contestant: Contestant) -> tuple[Any, float]:
        """One call with its completion, on the engine's clock. The process's first is a phase of its own."""
        from fairlap import engine

        kept: list[Any] = []

        def call() -> Any:
            try:
                kept.append(bound())
            except Exception:
                raise  # passing through Python, it keeps the way it came
            return kept[0]

        before = "" if self._was_called else self._phase.begin(FIRST_CALL)
        once = engine.time_calls(call, done=contestant.done, samples=1, warmup=0, calls_per_sample=1)
        if once.interrupted:
            raise KeyboardInterrupt
        seconds = float(once.wall_ns[0]) / 1e9
        if not self._was_called:
            self._phase.end(FIRST_CALL, seconds, before)
            self._was_called = True
        return kept[0], seconds


def _energy(meter: Meter, measured: Measurement, begin_ns: int, end_ns: int) -> EnergyOfBlock:
    """Of the timed calls alone. They follow the warm-up; what is thought about them comes after, in milliseconds."""
    from fairlap.meters.energy_readings import EnergyOfBlock

    calls = measured.samples * measured.calls_per_sample
    timed_from_ns = begin_ns + round(measured.warm_up.elapsed_s * 1e9)
    read = meter.read_somewhere_in(timed_from_ns, end_ns, round(measured.elapsed_s * 1e9))
    return EnergyOfBlock(measured.elapsed_s, calls, read)


def _write(path: str, arrays: Mapping[str, Any]) -> None:
    from fairlap.models import safetensors

    safetensors.write(Path(path), arrays)


def framework_class(name: str) -> type[Framework]:
    """By its registered name, or written out as "module:Class"."""
    from fairlap.frameworks.registry import framework_at, framework_named

    if ":" not in name:
        return framework_named(name)
    return framework_at(name)


def _require_support(framework: Framework, wanted: Prepare) -> None:
    for what, value, known in (
        ("variant", wanted.variant, framework.variants),
        ("mode", wanted.mode, framework.modes),
        ("precision", wanted.precision, framework.precisions),
    ):
        if value not in known:
            listed = ", ".join(each or "(none)" for each in known)
            raise Unsupported(f"{framework.name} has no {what} {value}; it has {listed}")

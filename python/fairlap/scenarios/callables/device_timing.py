"""Callables and kernel files timed on a GPU from the command line: on which device and stream, and what ran there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairlap import quantity_text
from fairlap.engine import measure, stream_of, time_calls
from fairlap.engine.cuda.device_completion import device_completion, stream_used_by
from fairlap.engine.cuda.kernel_file import Launch, loaded_kernels
from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.engine.measurement import KernelOfCall, KernelsOfCall
from fairlap.errors import FairlapError, InvalidRequest, described
from fairlap.meters.sample_clocks import SampleClocks
from fairlap.scenarios.regime import A_WHILE_S, regime_named

if TYPE_CHECKING:
    from fairlap.engine.cuda.stream_measurement import StreamMeasurement, Tally
    from fairlap.engine.measurement import Measurement

WALL = "wall"
CACHES = {"warm": "warm", "cold": "flush"}
AUTO, HIDDEN, WATCH = "auto", "hidden", "watch"
_TRACED_SAMPLES = 10
_A_WHILE: Mapping[str, Any] = {"seconds": A_WHILE_S, "samples": None, "target": None}

Callables = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class OnDevice:
    """Where and how callables are timed. ``stream`` is "auto", "hidden", "watch", an address or MODULE:NAME."""

    number: int = 0
    stream: str = AUTO
    method: str = "device_span"
    cache: str = "warm"
    graph: bool = False
    regime: str = ""

    def __post_init__(self) -> None:
        if self.method == WALL and (self.graph or self.cache != "warm"):
            raise InvalidRequest("a graph and a cold cache go with a method that times a stream, not with wall")
        regime_named(self.regime, on_stream=self.method != WALL)

    @property
    def needs_stream(self) -> bool:
        return self.graph or self.method == "device_span"


@dataclass(frozen=True)
class Timed:
    """What :func:`fairlap.measure` and :func:`fairlap.compare` are given: callables by name, and their options."""

    callables: Mapping[str, Any]
    options: Mapping[str, Any]
    done: Mapping[str, Any] = field(default_factory=dict)
    stream: object = HIDDEN
    number: int = 0
    regime: str = ""


@dataclass(frozen=True)
class Kernels:
    """The kernels of one call by name, or why they are not known."""

    by_name: Mapping[str, Tally]
    calls: int = 1
    absent: str = ""

    def document(self) -> KernelsOfCall:
        by_name = {
            name: KernelOfCall(tally.count / self.calls, tally.total_ns / self.calls)
            for name, tally in self.by_name.items()
        }
        return KernelsOfCall(by_name, self.absent)

    def __str__(self) -> str:
        if self.absent:
            return f"  {'kernels':<12} not known: {self.absent}"
        longest_first = sorted(self.by_name.items(), key=lambda each: -each[1].total_ns)
        lines = [
            f"{quantity_text.duration(tally.total_ns / self.calls)} in {tally.count / self.calls:g} of {name}"
            for name, tally in longest_first
        ]
        return "\n".join(
            f"  {'kernels' if not place else '':<12} {line}" for place, line in enumerate(lines or ["none ran"])
        )


@contextmanager
def kernel_files(names: Sequence[str], launch: Launch, wanted: OnDevice) -> Iterator[Timed]:
    """Kernels of PTX and cubin files, on a stream of ours."""
    if wanted.stream != AUTO:
        raise InvalidRequest("kernel files run on a stream of fairlap's own; leave --stream out")
    with loaded_kernels(names, launch, wanted.number) as loaded:
        if wanted.method == WALL:
            yield Timed(loaded.launches, {}, loaded.waits, loaded.stream, wanted.number)
        else:
            options = {**_options(wanted), "stream": loaded.stream}
            yield Timed(loaded.launches, options, {}, loaded.stream, wanted.number, wanted.regime)


def callables_on_device(callables: Callables, wanted: OnDevice) -> Timed:
    """Each is called once, so that its framework has started the device and its stream is known."""
    for name, call in callables.items():
        time_calls(call, name=name, samples=1, warmup=0, calls_per_sample=1)
    completion = device_completion(wanted.number)
    completion(None)
    stream = _stream_of_all(callables, wanted)
    if wanted.method == WALL:
        return Timed(callables, {}, dict.fromkeys(callables, completion), stream, wanted.number)
    # A framework may enqueue after its call has returned; where events cannot order that, the device is waited for.
    done = {} if wanted.needs_stream or wanted.method == "host_issue" else dict.fromkeys(callables, completion)
    return Timed(callables, {**_options(wanted), "stream": stream}, done, stream, wanted.number, wanted.regime)


def measured_alone(timed: Timed, name: str, **options: Any) -> Measurement:
    """Measure one callable, in its regime and with the clock of each sample."""
    regime = regime_named(timed.regime, on_stream="stream" in timed.options)
    call, settled = timed.callables[name], {"name": name, "done": timed.done.get(name), **timed.options}
    with SampleClocks(options.get("clock", "auto")) as clocks:
        if "stream" not in timed.options:
            return measure(call, **settled, **options)
        clocks.start(timed.number)
        if regime.kind:
            first = measure(call, **settled, **{**options, **_A_WHILE})
            if first.interrupted:
                return first
            options = {**options, "warmup": 1, "calls_per_sample": first.calls_per_sample}

        def work_a_while() -> float | None:
            load = measure(call, **settled, **{**options, **_A_WHILE})
            if load.interrupted:
                raise KeyboardInterrupt
            return clocks.applied(load).headline.sm_mhz

        regime.load(work_a_while)
        if regime.kind == "burst" and options.get("samples") is None:
            options["seconds"] = min(options.get("seconds") or A_WHILE_S, A_WHILE_S)
        regime.before_turn()
        found = clocks.applied(measure(call, **settled, **options))
        settings = {**found.settings, **({"regime": regime.text} if regime.kind else {})}
        if timed.options["cache"] == "flush" and not found.interrupted:
            warm = measure(call, **{**settled, **options, **_A_WHILE, "cache": "warm", "warmup": 1})
            settings["warm_cache"] = _beside_warm(found.median_ns, warm.median_ns)
    return replace(found, settings=settings, warnings=(*found.warnings, *regime.notices))


def _beside_warm(cold_ns: float, warm_ns: float) -> str:
    """Show that cold is not warm: ``3.1 us, a cold call takes 1.74× as long``."""
    return f"{quantity_text.duration(warm_ns)}, a cold call takes {quantity_text.times(cold_ns / warm_ns)} as long"


def kernels_of(timed: Timed, name: str) -> Kernels:
    """Of one call, from activity records: in a separate measurement, because records make launches slower."""
    try:
        traced = time_on_stream(
            timed.callables[name],
            stream=timed.stream,
            device=timed.number,
            done=timed.done.get(name),
            method="kernel_sum",
            samples=_TRACED_SAMPLES,
            warmup=1,
            calls_per_sample=1,
        )
    except FairlapError as error:
        return Kernels({}, absent=str(error))
    return kernels_in(traced)


def kernels_in(traced: StreamMeasurement) -> Kernels:
    return Kernels(traced.kernels, max(1, traced.samples * traced.calls_per_sample))


def _options(wanted: OnDevice) -> dict[str, Any]:
    return {
        "device": wanted.number,
        "method": wanted.method,
        "cache": CACHES[wanted.cache],
        **({"graph": True} if wanted.graph else {}),
    }


def _stream_of_all(callables: Callables, wanted: OnDevice) -> object:
    """Find the one stream on which all of them work."""
    found = {name: _stream(call, wanted) for name, call in callables.items()}
    addresses = {name: stream_of(stream).address for name, stream in found.items()}
    if len(set(addresses.values())) > 1:
        listed = ", ".join(f"{name} on {address or 0:#x}" for name, address in addresses.items())
        raise InvalidRequest(f"they work on different streams: {listed}; time them one by one, or use --method wall")
    return next(iter(found.values()))


def _stream(call: Callable[[], object], wanted: OnDevice) -> object:
    word = wanted.stream
    if word == HIDDEN or (word == AUTO and not wanted.needs_stream):
        return HIDDEN
    if word == WATCH:
        return stream_used_by(call, wanted.number)
    if word != AUTO:
        return _named_stream(word)
    known = _current_stream(wanted.number)
    return stream_used_by(call, wanted.number) if known is None else known


def _current_stream(device: int) -> object | None:
    """Of a framework that the callables imported. JAX, TensorFlow and Numba have none in Python: CUPTI is asked."""
    torch: Any = sys.modules.get("torch")
    cupy: Any = sys.modules.get("cupy")
    current: object | None = None
    if torch is not None and torch.cuda.is_initialized():
        current = torch.cuda.current_stream(device)
    elif cupy is not None:
        current = cupy.cuda.get_current_stream()
    return current


def _named_stream(word: str) -> object:
    try:
        return int(word, 0)
    except ValueError:
        pass
    module, colon, name = word.partition(":")
    if not colon:
        raise InvalidRequest(f"{word!r} is not a stream: give auto, hidden, watch, an address, or MODULE:NAME")
    try:
        found: Any = getattr(import_module(module), name)
    except Exception as error:
        raise InvalidRequest(f"the stream {word} cannot be imported: {described(error)}") from None
    is_stream = hasattr(found, "__cuda_stream__") or not callable(found)
    return found if is_stream else found()

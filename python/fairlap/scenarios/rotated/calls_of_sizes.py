"""Calls of a contestant at sizes that change from call to call, in a worker."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.request.fields.sizes.padding import goes_to_one_size
from fairlap.scenarios.calls.latency_messages import Reading
from fairlap.scenarios.calls.timed_inputs import in_memory
from fairlap.scenarios.held import Held, write_arrays
from fairlap.scenarios.reading import read_result
from fairlap.scenarios.rotated.rotated_messages import SETS, DrawnAtSize, MeasureMix, MixMeasured, SeeSize, SizeSeen

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.models.workload import Workload

Bind = Callable[[Arrays], Callable[[], Any]]


def see(held: Held, request: SeeSize) -> tuple[SizeSeen, tuple[()]]:
    with held.phases.unreported():
        return _calls(held).see(request), ()


def measure(held: Held, request: MeasureMix) -> tuple[MixMeasured, list[memoryview]]:
    with held.phases.unreported():
        return _calls(held).measure(request)


def _calls(held: Held) -> CallsOfSizes:
    held.require_unprofiled()
    if held.elsewhere:
        raise Unsupported(f"{held.elsewhere}, and its calls are raced at one size")
    reader = held.framework.implementation or held.framework.name
    return held.part(CallsOfSizes, lambda: CallsOfSizes(held.contestant, held.read_again()[0], reader))


class CallsOfSizes:
    """Of one contestant, whose framework reads the model's implementation for ``reader``."""

    def __init__(self, contestant: Contestant, work: Workload, reader: str) -> None:
        self._contestant = contestant
        found = None if contestant.compilation is None else contestant.compilation()
        takes_others = goes_to_one_size(work.padded) or getattr(
            work.implementation(reader), "takes_other_sizes", bool(work.free_sizes)
        )
        if found is None or found.bind is None or not takes_others:
            raise Unsupported("here it runs this model at one size alone")
        self._bind: Bind = found.bind
        self._graphs = found.graphs
        self._bound: dict[int, cycle[Callable[[], Any]]] = {}
        self._names = [tensor.name for tensor in work.spec.inputs]
        self._kept: list[Arrays] = []  # some frameworks only point to them

    def see(self, request: SeeSize) -> SizeSeen:
        calls = [self._bind(self._arrays(file)) for file in request.inputs]
        self._bound[request.size] = cycle(calls)
        before = None if self._graphs is None else self._graphs()
        outputs: dict[str, np.ndarray] = {}
        seconds, readings = [], []
        for which, call in zip(SETS, calls, strict=True):
            results: list[Any] = []
            took_s = self._once(call, results)
            arrays, reading = read_result(self._contestant, call, results[0], took_s)
            outputs |= {f"{which}/{name}": np.array(array) for name, array in arrays.items()}
            seconds.append(took_s)
            readings.append(reading)
        graphs = None if self._graphs is None else self._graphs()
        compiled = None if graphs is None or before is None else graphs - before
        write_arrays(request.path, outputs)
        return SizeSeen(seconds[0], seconds[1], compiled, graphs, readings[0])

    def measure(self, request: MeasureMix) -> tuple[MixMeasured, list[memoryview]]:
        from fairlap.engine import DrawnCalls, time_calls

        first, *others = [next(self._bound[size]) for size in request.sizes]
        drawn = None if request.drawn is None else _Drawn(self._contestant, self._bind, self._bound, request.drawn)
        measurement = time_calls(
            first,
            in_turn=others,
            done=self._contestant.done,
            samples=len(request.sizes),
            warmup=0,
            calls_per_sample=1,
            drawn=None if drawn is None else DrawnCalls([drawn.at], drawn.bind(self._arrays), drawn.look),
        )
        _require_whole(measurement)
        times_ns = np.asarray(measurement.wall_ns, dtype="<f8")
        reply = MixMeasured(measurement.elapsed_s, times_ns.nbytes)
        if drawn is not None:
            reply = MixMeasured(measurement.elapsed_s, times_ns.nbytes, drawn.call_ns, drawn.reading)
        return reply, [times_ns.data.cast("B")]

    def _arrays(self, file: str) -> Arrays:
        arrays = safetensors.read(Path(file))
        own = {name: in_memory(arrays[name]) for name in self._names}
        self._kept.append(own)
        return own

    def _once(self, call: Callable[[], Any], results: list[Any]) -> float:
        """Time one completed call on the engine's clock, and keep its result."""
        from fairlap.engine import time_calls

        def kept() -> Any:
            results.append(call())
            return results[-1]

        once = time_calls(kept, done=self._contestant.done, samples=1, warmup=0, calls_per_sample=1)
        _require_whole(once)
        return float(once.wall_ns[0]) / 1e9


class _Drawn:
    """A call on inputs that are bound for it alone."""

    def __init__(
        self, contestant: Contestant, bind: Bind, bound: dict[int, cycle[Callable[[], Any]]], request: DrawnAtSize
    ) -> None:
        self._contestant, self._bind, self._bound, self._request = contestant, bind, bound, request
        self._call: Callable[[], Any] = lambda: None
        self.at, self.call_ns, self.reading = request.at, 0.0, Reading()

    def bind(self, arrays_in: Callable[[str], Arrays]) -> Callable[[int], Callable[[], Any]]:
        def bound(_number: int) -> Callable[[], Any]:
            self._call = self._bind(arrays_in(self._request.inputs))
            result = next(self._bound[self._request.size])()  # what was read and bound since took memory and caches
            if self._contestant.done is not None:
                self._contestant.done(result)
            return self._call

        return bound

    def look(self, _number: int, result: Any, call_ns: float) -> None:
        arrays, self.reading = read_result(self._contestant, self._call, result, call_ns / 1e9)
        write_arrays(self._request.path, arrays)
        self.call_ns = call_ns


def _require_whole(measurement: Measurement) -> None:
    if measurement.interrupted:
        raise KeyboardInterrupt

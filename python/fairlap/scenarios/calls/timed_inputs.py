"""The inputs of the timed calls: two sets take turns, and drawn calls get others, which no call has had before.

A contestant that keeps an answer, for an input or for its content, is wrong on one of them, or slower on the new ones.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.frameworks.contract import Contestant
from fairlap.meters.core_demand import CoreDemandMeter
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.spec import BATCH_LABELS, LABELS
from fairlap.scenarios.calls.latency_messages import BEFORE, Drawn, DrawnResult, Measure
from fairlap.scenarios.generation import parts_of_newest, with_tokens
from fairlap.scenarios.reading import read_result
from fairlap.scenarios.reported import with_cpu_time, with_reported

if TYPE_CHECKING:
    from fairlap.engine import DrawnCalls, Measurement
    from fairlap.request.fields.device_conditions import DeviceConditions
    from fairlap.scenarios.calls.conditions_in_force import ConditionsInForce
    from fairlap.scenarios.device_quantities import DeviceQuantities


_SETS = 2  # that take turns
_PADDINGS = 4
_SMALLEST_PADDING, _LARGEST_PADDING = 2**11, 2**20  # bytes; of many pages, and no multiple of one


class TimedInputs:
    """One contestant's callables, a callable for each set of inputs.

    ``part`` takes that of a rank out of unseen ones; the sets are parts already.
    """

    def __init__(
        self,
        contestant: Contestant,
        sets: Sequence[Arrays],
        unseen: Sequence[str],
        part: Callable[[Arrays], Arrays] | None = None,
    ) -> None:
        self._contestant, self._sets, self._unseen = contestant, sets, unseen
        self._is_rank, self._part = part is not None, part or _in_memory_all
        self._bound: dict[int, Callable[[], Any]] = {}
        self._measurements = 0
        self._unseen_inputs: list[Arrays] = []
        self._padding: list[np.ndarray] = []

    def bound(self, number: int) -> Callable[[], Any]:
        """Bound once, so that the checked answers come from the very callables that are measured."""
        if number not in self._bound:
            self._bound[number] = self._contestant.bind(self._sets[number])
        return self._bound[number]

    def deal(self, seed: int) -> bool:
        """Move the model and its inputs to other places in memory, and call it once on each set there.

        The places are between allocations of drawn sizes. Returns False if the contestant cannot move.
        """
        if self._contestant.deal is None:
            return False
        drawn, before = random.Random(seed), self._padding
        self._padding = _allocations(drawn)
        self._contestant.deal()
        self._padding += _allocations(drawn)
        self._sets, self._bound = [_in_memory_all(arrays) for arrays in self._sets], {}
        del before  # only now, so that nothing moves back to where it was
        for number in range(len(self._sets)):
            result = self.bound(number)()
            if self._contestant.done is not None:
                self._contestant.done(result)
        return True

    @property
    def _take_turns_call_by_call(self) -> bool:
        return not self._contestant.switching_copies

    def steps(self, first: int, count: int) -> list[Callable[[], Any]]:
        """Callables for steps of training on the sets in turn."""
        return [self.bound((first + number) % len(self._sets)) for number in range(count)]

    def conditions(self, wanted: DeviceConditions) -> ConditionsInForce:
        """Make those of a GPU that its calls are timed under."""
        from fairlap.scenarios.calls.conditions_in_force import ConditionsInForce

        return ConditionsInForce(self._contestant, self.bound(0), wanted)

    def settle(self, request: Measure, conditions: ConditionsInForce) -> Measure:
        """Bring the GPU into its regime by calls that do not count, and return what is to be measured then."""
        stamps = self._contestant.stamps
        if stamps is not None:
            stamps.record(False)
        settled = conditions.settle(request)
        if stamps is not None:
            stamps.record(True)
        return settled

    def measure(self, request: Measure, conditions: ConditionsInForce | None = None) -> tuple[Measurement, Drawn]:
        from fairlap.engine import time_calls

        if self._contestant.training is not None:
            self._contestant.training.reset()  # after many steps on few batches nothing is left to learn
        drawing = _Drawing(self._contestant, request, self._drawn_call, is_rank=self._is_rank)
        demand = CoreDemandMeter() if request.drawn else None
        measurement = time_calls(
            self._first_turn(),
            in_turn=self._other_turns(),
            done=self._contestant.done,
            drawn=drawing.drawn_calls() if request.drawn else None,
            before_each=None if conditions is None else conditions.before_each,
            **_limits(request),
        )
        if conditions is not None:
            conditions.calls_are_timed()
        if self._contestant.device is not None:
            measurement = _naming_completion(measurement)
        if self._contestant.stamps is not None:
            measurement = with_tokens(measurement, self._contestant.stamps)
        if self._contestant.own_times is not None:
            measurement = with_reported(measurement, self._contestant.own_times)
        if self._contestant.cpu_times is not None:
            measurement = with_cpu_time(measurement, self._contestant.cpu_times)
        cores = None if demand is None else demand.cores()
        if self._contestant.notices is not None:  # which may run it
            measurement = replace(measurement, warnings=(*measurement.warnings, *self._contestant.notices()))
        self._measurements += 1
        if demand is None:
            return measurement, Drawn()
        safetensors.write(Path(request.drawn_path), drawing.outputs)
        return measurement, Drawn(tuple(drawing.results), cores)

    def measure_device(
        self, request: Measure, calls_per_sample: int, conditions: ConditionsInForce | None = None
    ) -> DeviceQuantities:
        """Measure what the device can show besides the headline, on the first inputs, at the end of a process."""
        from fairlap.scenarios.device_quantities import device_quantities

        return device_quantities(
            self._contestant,
            self.bound(0),
            seconds=request.seconds,
            samples=request.samples,
            calls_per_sample=calls_per_sample,
            conditions=conditions,
        )

    def _first_turn(self) -> Callable[[], Any]:
        if self._take_turns_call_by_call:
            return self.bound(0)
        call = self.bound(self._measurements % len(self._sets))
        if self._contestant.switching_copies:
            call()
        return call

    def _other_turns(self) -> list[Callable[[], Any]]:
        others = range(1, len(self._sets)) if self._take_turns_call_by_call else ()
        return [self.bound(number) for number in others]

    def _drawn_call(self, number: int) -> Callable[[], Any]:
        if number < len(self._sets):
            return self.bound(number)
        arrays = safetensors.read(Path(self._unseen[number - len(self._sets)]))
        inputs = self._part({name: arrays[BATCH_LABELS if name == LABELS else name] for name in self._sets[0]})
        self._unseen_inputs.append(inputs)  # some frameworks only point to them
        if self._contestant.rebind is not None:
            return self._contestant.rebind(self.bound(len(self._sets) - 1), inputs)
        return (self._contestant.bind_new or self._contestant.bind)(inputs)


class _Drawing:
    """The drawn calls of one measurement and what came out of them."""

    def __init__(
        self, contestant: Contestant, request: Measure, bound: Callable[[int], Callable[[], Any]], *, is_rank: bool
    ) -> None:
        self._contestant, self._request, self._bound, self._is_rank = contestant, request, bound, is_rank
        self._call: Callable[[], Any] = lambda: None
        self._cpu_began_ns = 0
        self.results: list[DrawnResult] = []
        self.outputs: dict[str, np.ndarray] = {}

    def drawn_calls(self) -> DrawnCalls:
        from fairlap.engine import DrawnCalls

        return DrawnCalls([drawn.at for drawn in self._request.drawn], self._bind, self._look)

    def _bind(self, number: int) -> Callable[[], Any]:
        self._call = self._bound(self._request.drawn[number].inputs)
        if self._contestant.stamps is not None:
            self._contestant.stamps.record(False)  # neither this call nor those around it
        if self._contestant.training is not None:
            before = self._contestant.training.read()
            self.outputs |= {f"{number}/{BEFORE}{name}": array for name, array in before.items()}
        else:
            self._warm(0 if self._request.drawn[number].inputs else 1)
        self._cpu_began_ns = time.process_time_ns()
        return self._call

    def _warm(self, inputs: int) -> None:
        """Make a call that does not count, on other inputs than the drawn one.

        What was read and kept since the last one took the memory that calls reuse, and threads fell asleep. The drawn
        call would take longer for that alone.
        """
        result = self._bound(inputs)()
        if self._contestant.done is not None:
            self._contestant.done(result)

    def _look(self, number: int, result: Any, call_ns: float) -> None:
        cpu_ns = time.process_time_ns() - self._cpu_began_ns
        if self._contestant.training is not None:
            after = self._contestant.training.read()
            self.outputs |= {f"{number}/{name}": array for name, array in after.items()}
        call = None if self._is_rank else self._call
        arrays, reading = read_result(self._contestant, call, result, call_ns / 1e9)
        self.outputs |= {f"{number}/{name}": array for name, array in arrays.items()}
        self.results.append(DrawnResult(number, call_ns, reading, cpu_ns, self._parts_ns(number)))
        if self._contestant.stamps is not None:
            self._contestant.stamps.record(True)

    def _parts_ns(self, number: int) -> dict[str, float]:
        stamps = self._contestant.stamps_of_new
        is_new = self._request.drawn[number].inputs >= _SETS
        return parts_of_newest(stamps) if is_new and stamps is not None else {}


def _allocations(drawn: random.Random) -> list[np.ndarray]:
    sizes = [
        int(_SMALLEST_PADDING * (_LARGEST_PADDING / _SMALLEST_PADDING) ** drawn.random()) for _ in range(_PADDINGS)
    ]
    return [np.empty(size, np.uint8) for size in sizes]


def _naming_completion(measurement: Measurement) -> Measurement:
    """Name in the wall time's method what it waited for."""
    from fairlap.engine.cuda.device_completion import COMPLETION

    wall = measurement.quantities["wall_ns"]
    wall = replace(wall, method=f"{wall.method}; {COMPLETION} is in it")
    return replace(measurement, quantities={**measurement.quantities, "wall_ns": wall})


def _limits(request: Measure) -> Mapping[str, Any]:
    return {
        "seconds": request.seconds,
        "samples": request.samples,
        "warmup": "auto" if request.warmup is None else request.warmup,
        "calls_per_sample": "auto" if request.calls_per_sample is None else request.calls_per_sample,
    }


def _in_memory_all(arrays: Arrays) -> Arrays:
    return {name: in_memory(array) for name, array in arrays.items()}


def in_memory(mapped: np.ndarray) -> np.ndarray:
    """Make a read-only copy on a 64-byte boundary like the file's, so that the timed call reads no file."""
    memory = np.empty(mapped.nbytes + safetensors.ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % safetensors.ALIGNMENT
    copy = memory[start : start + mapped.nbytes].view(mapped.dtype).reshape(mapped.shape)
    copy[...] = mapped
    copy.flags.writeable = False
    return copy

"""A contestant's answers from file to answer, in a worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Unsupported
from fairlap.scenarios.calls.input_slots import InputSlots
from fairlap.scenarios.file_to_answer.answer_values import as_arrays, value_of
from fairlap.scenarios.file_to_answer.stage_functions import StageFunctions, forms_of
from fairlap.scenarios.file_to_answer.stage_messages import (
    INPUTS,
    OUTPUTS,
    ItemSeen,
    ItemsMeasured,
    MeasureItems,
    SeeItem,
)
from fairlap.scenarios.held import Held, write_arrays

Outputs = Mapping[str, np.ndarray]


def see(held: Held, request: SeeItem) -> tuple[ItemSeen, tuple[()]]:
    with held.phases.unreported():
        return _answers(held, request).see(request), ()


def measure(held: Held, request: MeasureItems) -> tuple[ItemsMeasured, list[memoryview]]:
    with held.phases.unreported():
        answers = _answers(held, request)
        return answers.overlapped(request) if request.overlapped else answers.one_by_one(request)


def _answers(held: Held, request: SeeItem | MeasureItems) -> AnswersOfFiles:
    held.require_unprofiled()
    if held.elsewhere:
        raise Unsupported(f"{held.elsewhere}, and files are answered in the worker")
    return held.part(AnswersOfFiles, lambda: AnswersOfFiles(held, StageFunctions(request.stages)))


class AnswersOfFiles:
    """All of an answer is in its time: the functions, handing over the inputs, the model, and reading its outputs."""

    def __init__(self, held: Held, functions: StageFunctions) -> None:
        work = held.read_again()[0]
        self._functions, self._files = functions, functions.stages.files
        self._forms = forms_of(work.spec, work.batch)
        self._slots = InputSlots(held.contestant, work.spec.inputs, work.batch)
        self._contestant = held.contestant
        self._last: Any = None  # final answer
        self._stamps: list[list[int]] = []
        self._calls = [self._timed_call(file) for file in self._files]

    def see(self, request: SeeItem) -> ItemSeen:
        file = self._files[request.item]
        began_ns = time.perf_counter_ns()
        value = self._functions.inputs_of(file)
        inputs = self._functions.checked(value, self._forms, file.name)
        handed_over_ns = time.perf_counter_ns()
        outputs = self._model(value)
        modelled_ns = time.perf_counter_ns()
        found = {f"{OUTPUTS}{name}": np.array(array) for name, array in outputs.items()}
        answer = value_of(self._functions.answer_of(outputs, file.name))
        ended_ns = time.perf_counter_ns()
        found |= {f"{INPUTS}{name}": array for name, array in inputs.items()}
        write_arrays(request.path, {**found, **as_arrays(answer)})
        return ItemSeen((ended_ns - began_ns) / 1e9, (modelled_ns - handed_over_ns) / 1e9)

    def one_by_one(self, request: MeasureItems) -> tuple[ItemsMeasured, list[memoryview]]:
        from fairlap.engine import time_calls

        self._stamps.clear()
        first, *others = [self._calls[item] for item in request.items]
        count = len(request.items)
        measurement = time_calls(first, in_turn=others, samples=count, warmup=0, calls_per_sample=1)
        if measurement.interrupted:
            raise KeyboardInterrupt
        stages_ns = np.diff(np.array(self._stamps[-count:], dtype=np.int64), axis=1)
        times_ns = np.ascontiguousarray(np.column_stack([np.asarray(measurement.wall_ns), stages_ns]), dtype="<f8")
        self._write_last(request)
        return ItemsMeasured(measurement.elapsed_s, times_ns.nbytes), [times_ns.reshape(-1).view(np.uint8).data]

    def overlapped(self, request: MeasureItems) -> tuple[ItemsMeasured, list[memoryview]]:
        """Keep the model and what follows it on this thread, which prepared the contestant."""
        files = [self._files[item] for item in request.items]
        ended_ns = []
        with ThreadPoolExecutor(1) as other:
            other.submit(int).result()  # starts the thread
            began_ns = time.perf_counter_ns()
            ahead = other.submit(self._before, files[0])
            for place in range(len(files)):
                value = ahead.result()
                if place + 1 < len(files):
                    ahead = other.submit(self._before, files[place + 1])
                self._last = self._after(self._model(value))
                ended_ns.append(time.perf_counter_ns())
        self._write_last(request)
        took_s, between_s = ((ended_ns[-1] - since_ns) / 1e9 for since_ns in (began_ns, ended_ns[0]))
        return ItemsMeasured(took_s, 0, between_s), []

    def _timed_call(self, file: Path) -> Callable[[], Any]:
        before, model, after = self._functions.before, self._model, self._functions.after
        now_ns, stamps = time.perf_counter_ns, self._stamps

        def call() -> Any:
            own = [now_ns()]
            value: Any = file
            for function in before:
                value = function(value)
                own.append(now_ns())
            value = model(value)
            own.append(now_ns())
            for function in after:
                value = function(value)
                own.append(now_ns())
            stamps.append(own)
            self._last = value
            return value

        return call

    def _before(self, value: Any) -> Any:
        return _through(self._functions.before, value)

    def _after(self, value: Any) -> Any:
        return _through(self._functions.after, value)

    def _model(self, value: Any) -> Outputs:
        given = value if isinstance(value, Mapping) else None
        for name, array in self._slots.arrays.items():
            array[...] = value if given is None else given[name]
        result = self._slots.result()
        if self._contestant.done is not None:
            self._contestant.done(result)
        return self._contestant.outputs(result)

    def _write_last(self, request: MeasureItems) -> None:
        """Before another call: a framework may write its outputs to the same memory."""
        write_arrays(request.path, as_arrays(value_of(self._last)))
        self._last = None


def _through(functions: Sequence[Callable[[Any], Any]], value: Any) -> Any:
    for function in functions:
        value = function(value)
    return value

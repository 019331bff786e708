"""Calls whose inputs, in training with their labels, come from a pipeline: proof that it is correct, times and waits.

A contestant that trains begins the proof and the measurement with the weights that were given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fairlap.data.npy_rows import NpyRows
from fairlap.data.pipeline import NUMBERS, WAITED, Job, Pipeline
from fairlap.data.pipeline_choice import Choice, choice_in
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Contestant, Fed, Unsupported
from fairlap.models.arrays import Arrays
from fairlap.request.fields.training import STEPS_OF_AN_ANSWER
from fairlap.scenarios.calls import latency_messages
from fairlap.scenarios.calls.latency_messages import BEFORE, Feed, Feeding, Measure
from fairlap.scenarios.held import Held, write_arrays

if TYPE_CHECKING:
    from fairlap.engine import Measurement

GOT, SEEN = "got/", "seen/"
WRONG_SAMPLES = "wrong samples"
CHECKED_BATCHES = 2
_MIN_CALLS = 10
_COPIES_S, _MIN_COPIES = 0.1, 24  # of which four slots leave out the first eight and the last ones
MOST_PROVEN_BYTES = 2**30
"""At most this much of an epoch is compared with the files."""


class FedCalls:
    """One contestant fed by one pipeline."""

    def __init__(self, contestant: Contestant, fed: Fed, choice: Choice, request: Feed, batch: int) -> None:
        self._contestant, self._fed, self._choice = contestant, fed, choice
        self._job = Job(request.files, request.samples, batch, request.seed)
        self._checked_rows = list(range(batch)) if request.whole_batches else sorted({0, batch - 1})
        self._training = contestant.training
        self._checked_batches = CHECKED_BATCHES if self._training is None else STEPS_OF_AN_ANSWER
        self._pipeline: Pipeline | None = None
        self._one_call_s = 0.0
        self.feeding: Feeding | None = None

    def proof(self) -> dict[str, np.ndarray]:
        """Run a numbered epoch through a separate pipeline.

        Returns the sample numbers, how many samples differed from the files, and the outputs for the first batches, or
        the state after the step on each of them.
        """
        self._reset()
        files = {name: NpyRows(file) for name, file in self._job.files.items()}
        pipeline = self._choice.opened(replace(self._job, epochs=1, numbered=True), self._fed)
        found: dict[str, np.ndarray] = {}
        numbers: list[np.ndarray] = []
        wrong = proven_bytes = 0
        try:
            while proven_bytes < MOST_PROVEN_BYTES and (taken := pipeline.take()) is not None:
                seen = dict(pipeline.arrays())
                arrived = np.array(seen.pop(NUMBERS), dtype=np.int64).reshape(-1)
                inputs = {name: taken[name] for name in files}
                if len(numbers) < self._checked_batches:
                    found |= _under(f"{len(numbers)}/", self._checked_call(inputs, seen))
                # After the call, so that a batch overwritten during the work is detected.
                seen = dict(pipeline.arrays())
                wrong += sum(_rows_that_differ(seen[name], rows.rows(arrived)) for name, rows in files.items())
                proven_bytes += sum(seen[name].nbytes for name in files)
                numbers.append(arrived)
                del taken, inputs, seen
                pipeline.release()
        finally:
            pipeline.close()
        found[NUMBERS] = np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
        found[WRONG_SAMPLES] = np.array([wrong], np.int64)
        return found

    def open(self) -> str:
        """Start feeding for the measurement. Return the name of the pipeline."""
        self._pipeline = self._choice.opened(self._job, self._fed)
        return self._pipeline.description

    def answer(self) -> dict[str, np.ndarray]:
        """Compute the next batch of the measured pipeline; return outputs and inputs, in training the state before."""
        pipeline = self._opened()
        before = {} if self._training is None else _under(BEFORE, self._training.read())
        taken = pipeline.take()
        assert taken is not None  # the job is endless
        try:
            return {**before, **self._checked_call(taken, pipeline.arrays())}
        finally:
            pipeline.release()

    def measure(self, request: Measure) -> Measurement:
        """Warm up separately, so that the waits are those of the measured calls alone."""
        from fairlap import engine

        pipeline = self._opened()
        self._reset()
        call = self._call(pipeline)
        warm = engine.time_calls(
            call, samples=1, warmup="auto" if request.warmup is None else request.warmup, calls_per_sample=1
        )
        # A slow call is measured for longer: one sample has no meaningful median.
        one_call_s = float(np.nanmedian(next(iter(warm.quantities.values())).values)) / 1e9
        seconds = None if request.seconds is None else max(request.seconds, _MIN_CALLS * one_call_s)
        before = pipeline.waits_ns()
        measured = engine.time_calls(call, seconds=seconds, samples=request.samples, warmup=0, calls_per_sample=1)
        after = pipeline.waits_ns()
        wall_ns = float(np.nansum(next(iter(measured.quantities.values())).values))
        waits: dict[str, Any] = {name: float(after[name] - before[name]) for name in after}
        calls = measured.samples
        self.feeding = Feeding(self._job.batch * calls, calls, wall_ns, wall_ns - waits[WAITED], **waits)
        self._one_call_s = one_call_s
        return replace(measured, warm_up=warm.warm_up)

    def time_copies(self) -> None:
        """Time the copies to a GPU over further calls, since events would make those that are reported slower."""
        from fairlap import engine

        pipeline, feeding = self._opened(), self.feeding
        if feeding is None:
            return
        if self._fed.device != "cpu":
            pipeline.time_copies(True)
            seconds = max(_COPIES_S, _MIN_COPIES * self._one_call_s)
            engine.time_calls(self._call(pipeline), seconds=seconds, warmup=0, calls_per_sample=1)
            pipeline.time_copies(False)
        self.feeding = msgspec.structs.replace(feeding, copies=pipeline.copies())

    def close(self) -> None:
        if self._pipeline is not None:
            self._pipeline.close()
            self._pipeline = None

    def _reset(self) -> None:
        if self._training is not None:
            self._training.reset()

    def _call(self, pipeline: Pipeline) -> Callable[[], Any]:
        """Make a call that releases the batch, whose memory may be reused, only after the work on it is done."""
        take, release = pipeline.take, pipeline.release
        run, done = self._fed.run, self._contestant.done

        def call() -> Any:
            result = run(take())  # type: ignore[arg-type]  # the job is endless
            if done is not None:
                done(result)
            release()
            return result

        return call

    def _checked_call(self, inputs: Mapping[str, Any], seen: Arrays) -> dict[str, np.ndarray]:
        """Return the inputs and outputs of the checked items of a batch; of a step, the loss and the state after it."""
        rows = self._checked_rows
        went_in = {name: np.array(array[rows]) for name, array in seen.items()}
        result = self._fed.run(inputs)
        if self._contestant.done is not None:
            self._contestant.done(result)
        outputs = self._contestant.outputs(result)
        if self._training is None:
            came_out = {name: array[rows].copy() for name, array in outputs.items()}
        else:
            came_out = {**outputs, **self._training.read()}
        return {**_under(SEEN, went_in), **_under(GOT, came_out)}

    def _opened(self) -> Pipeline:
        if self._pipeline is None:
            raise InvalidRequest("the pipeline is not open yet")
        return self._pipeline


def feed(held: Held, request: Feed) -> tuple[latency_messages.Fed, tuple[()]]:
    name = held.framework.name
    calls = FedCalls(held.contestant, fed_of(held.contestant, name), choice_in(held.options, name), request, held.batch)
    with held.phases("proof"):
        write_arrays(request.path, calls.proof())
    held.fed = calls
    return latency_messages.Fed(calls.open()), ()


def fed_of(contestant: Contestant, framework: str) -> Fed:
    if contestant.fed is None:
        raise Unsupported(f"{framework} cannot take fed batches with these options; leave it out, or leave out --data")
    return contestant.fed


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {prefix + name: array for name, array in arrays.items()}


def _rows_that_differ(some: np.ndarray, others: np.ndarray) -> int:
    """Compare by bytes, so that a NaN equals itself."""
    pairs = (np.ascontiguousarray(each).reshape(len(each), -1).view(np.uint8) for each in (some, others))
    one, other = pairs
    return int((one != other).any(axis=1).sum())

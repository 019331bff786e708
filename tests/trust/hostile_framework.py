"""A framework whose variants pretend to work, one way each. ``test_hostile.py`` asserts how each is found.

The honest one runs the model's reference in float32, on one thread.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.draw import rounded_to_bfloat16
from fairlap.models.workload import Workload
from numpy_framework import NumpyFramework, copied, in_float32, in_force

Call = Callable[[], Any]
Forward = Callable[[Arrays], dict[str, Any]]


class Hostile(NumpyFramework):
    name = "hostile"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        trick = TRICKS[wanted.variant]()
        with phase("build"):
            weights = copied(work.weights)
        forward = work.implementation_of_reference().forward
        used = trick.weights(weights)
        return Contestant(
            bind=lambda inputs: trick.bind(lambda arrays: forward(used, arrays), inputs),
            done=None,
            outputs=lambda result: in_float32(trick.outputs(result)),
            weights=lambda: weights,
            in_force=in_force(work, wanted),
        )


class Honest:
    def weights(self, weights: dict[str, Any]) -> dict[str, Any]:
        return weights

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        return lambda: forward(inputs)

    def outputs(self, result: Any) -> dict[str, Any]:
        return result  # type: ignore[no-any-return]


class Closure(Honest):
    """Returns a function; the work is done when the outputs are read."""

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        return lambda: lambda: forward(inputs)

    def outputs(self, result: Any) -> dict[str, Any]:
        return result()  # type: ignore[no-any-return]


class _Lazy:
    def __init__(self, forward: Forward, inputs: Arrays) -> None:
        self.forward, self.inputs = forward, inputs


class LazyObject(Honest):
    """The same, behind an object of a custom type."""

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        return lambda: _Lazy(forward, inputs)

    def outputs(self, result: Any) -> dict[str, Any]:
        return result.forward(result.inputs)  # type: ignore[no-any-return]


class Future(Honest):
    """Hands the work to a pool and returns a future."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        return lambda: self._pool.submit(forward, inputs)

    def outputs(self, result: Any) -> dict[str, Any]:
        return result.result()  # type: ignore[no-any-return]


class _Ticket:
    def __init__(self, future: Any) -> None:
        self.future = future


class HiddenFuture(Future):
    """The same, with the future behind an object of another type."""

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        return lambda: _Ticket(self._pool.submit(forward, inputs))

    def outputs(self, result: Any) -> dict[str, Any]:
        return result.future.result()  # type: ignore[no-any-return]


class LateBuffer(Honest):
    """Another thread writes the outputs when the call has returned."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._buffer: dict[str, Any] = {}
        self._last: Any = None

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        def call() -> Any:
            if self._last is None:  # the first answer is right
                self._buffer.update(forward(inputs))
            elif self._last is not True:
                self._last.result()
            self._last = self._pool.submit(lambda: self._buffer.update(forward(inputs)))
            return self._buffer

        return call


class KeptPerBinding(Honest):
    """Keeps its first answer for each bound input."""

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        kept: dict[str, Any] = {}

        def call() -> Any:
            if not kept:
                kept.update(forward(inputs))
            return kept

        return call


class EveryFiftieth(Honest):
    """Computes at the first two calls and at every fiftieth."""

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        numbers, kept = itertools.count(), {}

        def call() -> Any:
            number = next(numbers)
            if number < 2 or number % 50 == 0:
                kept.update(forward(inputs))
            return kept

        return call


class KeptPerContestant(Honest):
    """Computes at the first calls of the process, later at every fiftieth, whatever the inputs."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._kept: dict[str, Any] = {}

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        def call() -> Any:
            number = next(self._numbers)
            if number < 8 or number % 50 == 0:
                self._kept = forward(inputs)
            return self._kept

        return call


class KeptByContent(Honest):
    """Keeps answers by the content of the inputs."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Any] = {}

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        def call() -> Any:
            key = b"".join(array.tobytes() for array in inputs.values())
            if key not in self._kept:
                self._kept[key] = forward(inputs)
            return self._kept[key]

        return call


class KeptByFirstElements(Honest):
    """Keeps answers by a few elements of the inputs."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Any] = {}

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        key = b"".join(array.reshape(-1)[:8].tobytes() for array in inputs.values())

        def call() -> Any:
            if key not in self._kept:
                self._kept[key] = forward(inputs)
            return self._kept[key]

        return call


class Previous(Honest):
    """Starts with an honest answer per binding, then returns that of the call before."""

    def __init__(self) -> None:
        self._last: Any = None

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        calls = itertools.count()

        def call() -> Any:
            now = forward(inputs)
            before, self._last = self._last, now
            return now if next(calls) == 0 or before is None else before

        return call


class OtherProcess(Honest):
    """Computes in a child process, and waits for it."""

    def __init__(self) -> None:
        self._ends: tuple[Connection, Connection] | None = None

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        def call() -> Any:
            if self._ends is None:
                self._ends = _started(forward)
            self._ends[0].send(dict(inputs))
            return self._ends[0].recv()

        return call


def _started(forward: Forward) -> tuple[Connection, Connection]:
    ours, theirs = multiprocessing.Pipe()
    if os.fork() == 0:
        os.setsid()
        while True:
            theirs.send(forward(theirs.recv()))
    return ours, theirs


class MoreThreads(Honest):
    """Splits every call over four threads, whatever was asked for."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(4)

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        shares = [np.array_split(array, 4) for array in inputs.values()]
        parts = [dict(zip(inputs, arrays, strict=True)) for arrays in zip(*shares, strict=True)]

        def call() -> Any:
            answers = list(self._pool.map(forward, parts))
            return {name: np.concatenate([answer[name] for answer in answers]) for name in answers[0]}

        return call


class Busy(Honest):
    """Computes, and starts the next call's work in a background thread."""

    def __init__(self) -> None:
        self._started = False

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        def call() -> Any:
            if not self._started:
                self._started = True
                threading.Thread(target=_work_for_ever, args=(forward, inputs), daemon=True).start()
            return forward(inputs)

        return call


def _work_for_ever(forward: Forward, inputs: Arrays) -> None:
    while True:
        forward(inputs)


class HalfBatch(Honest):
    """Computes half of the batch and copies it."""

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        half = {name: array[: (len(array) + 1) // 2] for name, array in inputs.items()}

        def call() -> Any:
            answer = forward(half)
            return {name: np.concatenate([value, value])[: 2 * len(value)] for name, value in answer.items()}

        return call


class EarlyExit(Honest):
    """Stops after the first item of the batch once it is warm."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        first = {name: array[:1] for name, array in inputs.items()}

        def call() -> Any:
            if next(self._numbers) < 8:
                return forward(inputs)
            size = len(next(iter(inputs.values())))
            return {name: np.repeat(value, size, axis=0) for name, value in forward(first).items()}

        return call


class ZeroWeights(Honest):
    """Drops small weights."""

    def weights(self, weights: dict[str, Any]) -> dict[str, Any]:
        return {name: np.where(np.abs(array) < 0.01, 0, array).astype(np.float32) for name, array in weights.items()}


class SkippedLayer(Honest):
    """Leaves the last normalisation or bias out."""

    def weights(self, weights: dict[str, Any]) -> dict[str, Any]:
        last = list(weights)[-1]
        return {**weights, last: np.zeros_like(weights[last])}


class Bfloat16(Honest):
    """Computes with weights rounded to bfloat16."""

    def weights(self, weights: dict[str, Any]) -> dict[str, Any]:
        return {name: rounded_to_bfloat16(array) for name, array in weights.items()}


class ReplicatePadding(Honest):
    """Repeats the pixels at the edge of an image where zeros should be."""

    def __init__(self) -> None:
        from fairlap.bench_models.convnet import reference

        zeros = reference.convolution

        def convolution(image: Any, kernel: Any, stride: int) -> Any:
            padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
            inner = zeros(padded, kernel, 1)[:, :, 1:-1, 1:-1]
            return inner[:, :, ::stride, ::stride]

        reference.convolution = convolution


class Sleeper(Honest):
    """Waits for a machine elsewhere that computes for it: no CPU time is used here."""

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        answer = forward(inputs)

        def call() -> Any:
            time.sleep(0.002)
            return answer

        return call


LEFT_BEHIND = "left-behind-by-hostile"
"""Among the arguments of what the next ones leave behind."""


class LeftSleeping(Honest):
    """Leaves a helper in a session of its own, without parent and environment, as frameworks do. It sleeps."""

    code = "import time; time.sleep(1000)"

    def __init__(self) -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execve(sys.executable, [sys.executable, "-S", "-c", self.code, LEFT_BEHIND], {})
            os._exit(0)
        os.wait()


class LeftBurning(LeftSleeping):
    """It takes a core from the others."""

    code = "while True: pass"


TRICKS: dict[str, type[Honest]] = {
    "": Honest,
    "closure": Closure,
    "lazy-object": LazyObject,
    "future": Future,
    "hidden-future": HiddenFuture,
    "late-buffer": LateBuffer,
    "kept-per-binding": KeptPerBinding,
    "every-fiftieth": EveryFiftieth,
    "kept-per-contestant": KeptPerContestant,
    "kept-by-content": KeptByContent,
    "kept-by-first-elements": KeptByFirstElements,
    "previous": Previous,
    "other-process": OtherProcess,
    "more-threads": MoreThreads,
    "busy": Busy,
    "half-batch": HalfBatch,
    "early-exit": EarlyExit,
    "zero-weights": ZeroWeights,
    "skipped-layer": SkippedLayer,
    "bfloat16": Bfloat16,
    "replicate-padding": ReplicatePadding,
    "sleeper": Sleeper,
    "left-sleeping": LeftSleeping,
    "left-burning": LeftBurning,
}
Hostile.variants = tuple(TRICKS)

"""Tricks that answer from what they computed before."""

from __future__ import annotations

import itertools
from typing import Any

from fairlap.models.arrays import Arrays

from hostile_tricks.honest import Call, Forward, Honest


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

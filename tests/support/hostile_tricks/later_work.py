"""Tricks that do the work after the timed call has returned."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fairlap.models.arrays import Arrays

from hostile_tricks.honest import Call, Forward, Honest


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

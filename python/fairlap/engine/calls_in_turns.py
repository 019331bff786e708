"""Callables that take turns in the native loop: one sample of each, again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.engine import _native
from fairlap.engine.arguments import truth
from fairlap.engine.clocks import clock_named
from fairlap.engine.native_functions import native_function_of
from fairlap.engine.timed_calls import native_work, python_work


@dataclass(frozen=True)
class Rounds:
    """``wall_ns`` is shaped (callables, rounds); rounds with a sample that is not valid are left out.

    ``is_reversed`` has the rounds that ran in the reverse order.
    """

    wall_ns: npt.NDArray[np.float64]
    is_reversed: npt.NDArray[np.bool_]
    elapsed_s: float
    interrupted: bool
    raised: BaseException | None = None
    raised_by: int = 0


class CallsInTurns:
    """Callables without arguments, each with its completion, made ready to be timed in rounds."""

    def __init__(
        self,
        calls: Sequence[tuple[Callable[..., object], Callable[[Any], object] | None]],
        *,
        clock: str = "auto",
        pause_gc: bool = True,
    ) -> None:
        self._clock = clock_named(clock)
        self._pause_gc = truth("pause_gc", pause_gc)
        self._works = [_work(fn, done) for fn, done in calls]

    def rounds(self, count: int, order: Sequence[int], calls_per_sample: Sequence[int]) -> Rounds:
        """So many rounds, in this order and its reverse by turns. A call goes before each sample, untimed."""
        both = np.array([order, order[::-1]])
        turns = np.resize(both, (count, len(order)))
        record = _native.time_in_turns(
            self._works,
            self._clock,
            calls_per_sample=list(calls_per_sample),
            order=turns.ravel().tolist(),
            pause_collector=self._pause_gc,
        )
        raised = record.exception if record.stopped_by is _native.StopReason.raised else None
        in_turns = np.asarray(record.wall_ns)
        whole = in_turns.size // len(order)
        wall_ns = np.empty((whole, len(order)))
        np.put_along_axis(wall_ns, turns[:whole], in_turns[: wall_ns.size].reshape(wall_ns.shape), axis=1)
        valid = (wall_ns > 0).all(axis=1)
        interrupted = record.stopped_by is _native.StopReason.interrupt
        is_reversed = np.arange(whole) % 2 == 1
        return Rounds(wall_ns[valid].T, is_reversed[valid], record.elapsed_ns / 1e9, interrupted, raised, record.last)


def _work(fn: object, done: object) -> _native.NativeCall | _native.PythonCall:
    native = native_function_of(fn)
    return native_work(native, (), None, done) if native else python_work(fn, (), None, done)

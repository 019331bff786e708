"""Callables that take turns in the native loop: one sample of each, again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairlap.engine import _native
from fairlap.engine.arguments import truth
from fairlap.engine.clocks import clock_named
from fairlap.engine.native_functions import NativeFunction, native_function_of
from fairlap.engine.timed_calls import native_completion, native_context, require_python_work


class Arguments(NamedTuple):
    """Of one call."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}


@dataclass(frozen=True)
class InTurn:
    """A callable, its completion, and the arguments that its calls get in turn."""

    fn: Callable[..., object] | NativeFunction
    done: Callable[[Any], object] | None = None
    on: Sequence[Arguments] = (Arguments(),)


@dataclass(frozen=True)
class DrawnTurns:
    """Single calls, timed like all others but not among the samples, before a round each.

    ``places`` are pairs of a round and a callable, ascending by round. ``on(number)`` gives the arguments of a call,
    and ``look(number, result, wall_ns)`` gets what it returned, both by its number in the list.
    """

    places: Sequence[tuple[int, int]] = ()
    on: Callable[[int], Arguments] = field(default=lambda number: Arguments())
    look: Callable[[int, Any, float], object] = field(default=lambda number, result, wall_ns: None)


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
    """Callables made ready to be timed in rounds."""

    def __init__(self, clock: str = "auto", *, pause_gc: bool = True) -> None:
        self._clock = clock_named(clock)
        self._pause_gc = truth("pause_gc", pause_gc)

    def rounds(
        self,
        calls: Sequence[InTurn],
        count: int,
        order: Sequence[int],
        calls_per_sample: Sequence[int],
        drawn: DrawnTurns = DrawnTurns(),
    ) -> Rounds:
        """Time so many rounds, in this order and its reverse by turns. A call goes before each sample, untimed."""
        both = np.array([order, order[::-1]])
        turns = np.resize(both, (count, len(order)))
        record = _native.time_in_turns(
            [_work(each, drawn) for each in calls],
            self._clock,
            calls_per_sample=list(calls_per_sample),
            order=turns.ravel().tolist(),
            drawn=[(min(at, count - 1) * len(order), place) for at, place in drawn.places],
            pause_collector=self._pause_gc,
        )
        raised = record.exception if record.stopped_by is _native.StopReason.raised else None
        in_turns = np.asarray(record.wall_ns)
        whole = in_turns.size // len(order)
        wall_ns = np.empty((whole, len(order)))
        in_whole_rounds = in_turns[: wall_ns.size].reshape(wall_ns.shape)
        np.put_along_axis(wall_ns, turns[:whole], in_whole_rounds, axis=1)
        valid = (wall_ns > 0).all(axis=1)
        interrupted = record.stopped_by is _native.StopReason.interrupt
        is_reversed = np.arange(whole) % 2 == 1
        return Rounds(wall_ns[valid].T, is_reversed[valid], record.elapsed_ns / 1e9, interrupted, raised, record.last)


def _work(turn: InTurn, drawn: DrawnTurns) -> _native.NativeCall | _native.PythonCall:
    native = native_function_of(turn.fn)
    if native is None:
        return _python_work(turn, drawn)
    return _native.NativeCall(
        native.address,
        [native_context(native, *each) for each in turn.on],
        *native_completion(native, turn.done),
        lambda number: native_context(native, *drawn.on(number)),
        drawn.look,
    )


def _python_work(turn: InTurn, drawn: DrawnTurns) -> _native.PythonCall:
    require_python_work(turn.fn, turn.done)
    calls = [(turn.fn, each.args, dict(each.kwargs)) for each in turn.on]

    def drawn_call(number: int) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        on = drawn.on(number)
        return turn.fn, on.args, dict(on.kwargs)

    return _native.PythonCall(calls, turn.done, drawn_call, drawn.look)

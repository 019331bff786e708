"""The arguments that take turns in the timed calls, with copies for each callable: another may change what it is given.

Arguments that calls change are put back at the start of each timed call, so that all calls have the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments, InTurn
from fairlap.engine.native_functions import native_function_of
from fairlap.scenarios.callables.answers.arrays import copied
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import copy_of, leaves_of_argument

SETS = 2

Put = tuple[Callable[[Any, Any], object], Any, Any]
"""What puts back, where, and what."""


class TurnArguments:
    """``changed`` are the names of arguments that the reference changes; they are put back where that can be."""

    def __init__(self, callables: Sequence[Checked]) -> None:
        self._callables = callables
        self._sets = [Arguments()]
        self._own: dict[int, list[Arguments]] = {}  # copies, by the place of the callable
        self.changed: frozenset[str] = frozenset()
        self.restores = False

    def change(self, changed: frozenset[str], arguments: Arguments) -> None:
        """Learn from the first call of the reference, on these arguments, what it changes."""
        self.changed = changed
        self.restores = bool(changed) and all(_can_restore(each.fn, arguments, changed) for each in self._callables)

    def begin(self, sets: Sequence[Arguments]) -> None:
        self._sets, self._own = list(sets[:SETS]), {}

    def next_set(self, arguments: Arguments, had: dict[int, Arguments]) -> None:
        """Let new arguments take the place of the oldest; ``had`` are copies that were had and not changed."""
        oldest = len(self._sets) >= SETS
        self._sets = [*self._sets[oldest:], arguments]
        for place in list(self._own):
            if place in had and not self.changed:
                self._own[place] = [*self._own[place][oldest:], had[place]]
            else:
                del self._own[place]

    def in_turn(self, place: int) -> InTurn:
        """Return what is timed of a callable."""
        each = self._callables[place]
        if self.changed or place not in self._own:
            self._own[place] = [self.ready(copy_of(arguments)) for arguments in self._sets]
        return InTurn(_restoring(each.fn) if self.restores else each.fn, each.done, self._own[place])

    def ready(self, arguments: Arguments) -> Arguments:
        return _with_originals(arguments, self.changed) if self.restores else arguments


def _restoring(call: Callable[..., object]) -> Callable[..., object]:
    """Take what ``_with_originals`` gives, and put it back before the call."""

    def restored(puts: tuple[Put, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        for put, where, what in puts:
            put(where, what)
        return call(*args, **kwargs)

    return restored


def _can_restore(call: object, arguments: Arguments, changed: Collection[str]) -> bool:
    """Tell whether this callable's arguments can be put back; a native function leaves no room for that."""
    return native_function_of(call) is None and _puts(arguments, changed) is not None


def _with_originals(arguments: Arguments, changed: Collection[str]) -> Arguments:
    """Add what is put back; ``changed`` are names of leaves."""
    return Arguments((tuple(_puts(arguments, changed) or ()), arguments.args, arguments.kwargs))


def _puts(arguments: Arguments, changed: Collection[str]) -> list[Put] | None:
    """None where something that is changed cannot be put back."""
    found: list[Put] = []
    for key, value in (*enumerate(arguments.args), *arguments.kwargs.items()):
        if set(changed) & leaves_of_argument(key, value).keys():
            puts = _puts_of(value)
            if puts is None:
                return None
            found += puts
    return found


def _puts_of(value: Any) -> list[Put] | None:
    if isinstance(value, np.ndarray):
        return [(np.copyto, value, copied(value))]
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "copy_"):
        return [(type(value).copy_, value, copied(value))]
    if isinstance(value, list):
        return [(_put_list, value, copied(value))]
    if isinstance(value, tuple):
        parts = [_puts_of(each) for each in value]
        return None if any(each is None for each in parts) else [put for each in parts for put in each or ()]
    return None


def _put_list(where: list[Any], what: list[Any]) -> None:
    where[:] = what

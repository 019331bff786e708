"""Arguments that calls change are put back at the start of each timed call, so that all calls have the same work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments
from fairlap.engine.native_functions import native_function_of
from fairlap.scenarios.callables.answers.arrays import copied
from fairlap.scenarios.callables.answers.drawn import leaves_of_argument

Put = tuple[Callable[[Any, Any], object], Any, Any]
"""What puts back, where, and what."""


def restoring(call: Callable[..., object]) -> Callable[..., object]:
    """Take what ``with_originals`` gives, and put it back before the call."""

    def restored(puts: tuple[Put, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        for put, where, what in puts:
            put(where, what)
        return call(*args, **kwargs)

    return restored


def can_restore(call: object, arguments: Arguments, changed: Collection[str]) -> bool:
    """Tell whether this callable's arguments can be put back; a native function leaves no room for that."""
    return native_function_of(call) is None and _puts(arguments, changed) is not None


def with_originals(arguments: Arguments, changed: Collection[str]) -> Arguments:
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

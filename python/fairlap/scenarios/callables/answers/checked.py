"""A callable as it is called where its answer is checked, outside of the timed calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlap.engine.calls_in_turns import Arguments
from fairlap.engine.native_functions import address_of_argument, native_function_of


@dataclass(frozen=True)
class Checked:
    """A callable whose answers are checked."""

    name: str
    fn: Callable[..., object]
    done: Callable[[Any], object] | None

    def __call__(self, arguments: Arguments) -> object:
        native = native_function_of(self.fn)
        if native is None:
            returned = self.fn(*arguments.args, **arguments.kwargs)
            if self.done is not None:
                self.done(returned)
            return returned
        context = address_of_argument(arguments.args[0]) if arguments.args else native.context
        _run_native(native.address, context)
        completion = native_function_of(self.done) if self.done is not None else None
        if completion is not None:
            _run_native(completion.address, completion.context)
        return None


def _run_native(address: int, context: int) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(context)

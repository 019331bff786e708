"""A callable as it is called where its answer is checked, outside of the timed calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlap.engine.calls_in_turns import Arguments
from fairlap.engine.native_functions import address_of_argument, native_function_of, run_native
from fairlap.engine.timed_calls import body_does_not_run, never_started
from fairlap.scenarios.callables.answers.arrays import NeverStarted


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
            self._require_started(returned)
            return returned
        context = address_of_argument(arguments.args[0]) if arguments.args else native.context
        run_native(native.address, context)
        completion = native_function_of(self.done) if self.done is not None else None
        if completion is not None:
            run_native(completion.address, completion.context)
        return None

    def _require_started(self, returned: object) -> None:
        """Refuse a coroutine that nothing has run: its creation would be all that is timed."""
        if inspect.iscoroutine(returned) and never_started(returned):
            raise NeverStarted(body_does_not_run(self.name))

"""Calls of a user's callable on arguments that were drawn for it, and their answers as arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant, ContestantFailed
from fairlap.models.arrays import Arrays
from fairlap.models.sources.callables.answers import CHANGED, compared, named_parts
from fairlap.models.sources.callables.arguments import Leaf, numbers_of, stored_value
from fairlap.models.sources.callables.reference import Form


class ArgumentChanged(ContestantFailed):
    """A callable wrote to an argument that the reference leaves as it was: later calls have other arguments."""

    code = reported = "E_ARGUMENT_CHANGED"


class _Bound:
    """One set of arguments, as the callable gets it, and as it was drawn."""

    def __init__(self, form: Form, drawn: Arrays) -> None:
        self.drawn = drawn
        self.made = form.arguments.made(drawn)
        leaves = form.arguments.leaves()
        self.restored = [_putting_back(self.made.leaves[name], leaves[name], drawn[name]) for name in form.restored]

    def holds(self, leaf: Leaf) -> Any:
        return stored_value(leaf, self.made.leaves[leaf.name])

    def is_as_drawn(self, leaf: Leaf) -> bool:
        now, then = self.holds(leaf), self.drawn[leaf.name]
        return now.nbytes == then.nbytes and np.array_equal(_bytes(now), _bytes(then))


class CallsOfForm:
    def __init__(self, form: Form, called: Callable[..., object]) -> None:
        self._form, self._called = form, called
        self._leaves = form.arguments.leaves()
        self._alive: weakref.WeakSet[_Bound] = weakref.WeakSet()

    def contestant(self, in_force: Mapping[str, str]) -> Contestant:
        return Contestant(
            bind=self._bind,
            done=None,
            outputs=self._outputs,
            weights=dict,
            in_force=in_force,
            deal=lambda: None,  # only the arguments are in memory, and those are bound again
            require_inputs=self._require_arguments,
        )

    def _bind(self, inputs: Arrays) -> Callable[[], Any]:
        bound = _Bound(self._form, inputs)
        self._alive.add(bound)
        call = partial(self._called, *bound.made.positional, **bound.made.keywords)
        if not self._form.changed:
            call.bound = bound  # type: ignore[attr-defined]  # for as long as the call is
            return call
        restored = bound.restored

        def call_and_name_arguments() -> tuple[Any, _Bound]:
            for put_back in restored:
                put_back()
            return call(), bound

        return call_and_name_arguments

    def _outputs(self, returned: Any) -> Any:
        """Return its own types: whole numbers of 64 bits do not fit into floats."""
        if not self._form.changed:
            return named_parts(self._form.answer, returned)
        result, bound = returned
        found = named_parts(self._form.answer, result)
        for name in self._form.changed:
            leaf, stored = self._leaves[name], bound.holds(self._leaves[name])
            whole = stored.size == bound.drawn[name].size
            found[f"{CHANGED} {name}"] = compared(numbers_of(leaf, stored) if whole else stored)
        return found

    def _require_arguments(self) -> None:
        """Raise ArgumentChanged where a call wrote to an argument that is not an answer."""
        for bound in list(self._alive):
            for name, leaf in self._leaves.items():
                if name not in self._form.changed and not bound.is_as_drawn(leaf):
                    raise ArgumentChanged(
                        f"it writes to its argument {name}, which the reference leaves as it was; work on a copy"
                    )


def _putting_back(made: Any, leaf: Leaf, drawn: Any) -> Callable[[], Any]:
    """Copy in its own layout, from memory in the same one."""
    kept = leaf.made(drawn)
    if leaf.kind == "numbers":
        return partial(made.__setitem__, slice(None), kept)
    return partial(made.copy_, kept) if leaf.kind == "tensor" else partial(np.copyto, made, kept)


def _bytes(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

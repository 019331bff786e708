"""Calls of a user's callable on arguments that were drawn for it, and their answers as arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant
from fairlap.frameworks.contract_parts.called_programs import ContestantFailed
from fairlap.models.arrays import Arrays
from fairlap.models.sources.callables.answers import CHANGED, compared, named_parts
from fairlap.models.sources.callables.arguments import Leaf, Made, numbers_of, stored_value
from fairlap.models.sources.callables.reference import Form


class ArgumentChanged(ContestantFailed):
    """A callable wrote to an argument that the reference leaves as it was: later calls have other arguments."""

    code = reported = "E_ARGUMENT_CHANGED"


class _Bound:
    """One set of arguments, as the callable gets it, and as it was drawn.

    ``place`` has the arrays, tensors and lists of another set, which are filled with this one.
    """

    def __init__(self, form: Form, drawn: Arrays, place: _Bound | None = None) -> None:
        self.drawn, self.place = drawn, place
        self._leaves = form.arguments.leaves()
        self.made = form.arguments.made(drawn) if place is None else place.filled(form, drawn)
        self.restored = [_filling(self.made.leaves[name], self._leaves[name], drawn[name]) for name in form.restored]

    def filled(self, form: Form, drawn: Arrays) -> Made:
        values = {}
        for name, leaf in self._leaves.items():
            if leaf.is_mutable:
                values[name] = self.made.leaves[name]
                _filling(values[name], leaf, drawn[name])()
            else:
                values[name] = leaf.made(drawn[name])
        return form.arguments.made_of(values)

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
        self._elsewhere: _Bound | None = None  # in the place of another set

    def contestant(self, in_force: Mapping[str, str]) -> Contestant:
        return Contestant(
            bind=lambda inputs: self._call_on(self._bound(inputs)),
            done=None,
            outputs=lambda returned: named_parts(self._form.answer, returned),
            outputs_of=self._outputs_of,
            weights=dict,
            in_force=in_force,
            deal=lambda: None,  # only the arguments are in memory, and those are bound again
            rebind=self._rebind,
            inputs_read=self._inputs_read,
        )

    def _bound(self, inputs: Arrays) -> _Bound:
        bound = _Bound(self._form, inputs)
        self._alive.add(bound)
        return bound

    def _rebind(self, call: Callable[[], Any], inputs: Arrays) -> Callable[[], Any]:
        """Put other arguments into the place of a call's: an answer that was kept for the place is wrong there."""
        self._put_back()
        self._elsewhere = _Bound(self._form, inputs, call.bound)  # type: ignore[attr-defined]
        return self._call_on(self._elsewhere)

    def _call_on(self, bound: _Bound) -> Callable[[], Any]:
        call: Any = partial(self._called, *bound.made.positional, **bound.made.keywords)
        if bound.restored:
            call = _restoring(call, bound.restored)
        call.bound = bound  # for as long as the call is
        found: Callable[[], Any] = call
        return found

    def _outputs_of(self, call: Callable[[], Any], returned: Any) -> Any:
        """Return its own types: whole numbers of 64 bits do not fit into floats."""
        found = named_parts(self._form.answer, returned)
        bound: _Bound = call.bound  # type: ignore[attr-defined]
        for name in self._form.changed:
            leaf, stored = self._leaves[name], bound.holds(self._leaves[name])
            whole = stored.size == bound.drawn[name].size
            found[f"{CHANGED} {name}"] = compared(numbers_of(leaf, stored) if whole else stored)
        return found

    def _inputs_read(self) -> None:
        """Raise ArgumentChanged where a call wrote to an argument that is not an answer."""
        hidden = None if self._elsewhere is None else self._elsewhere.place
        there = [bound for bound in self._alive if bound is not hidden]
        for bound in there if self._elsewhere is None else [*there, self._elsewhere]:
            for name, leaf in self._leaves.items():
                if name not in self._form.changed and not bound.is_as_drawn(leaf):
                    raise ArgumentChanged(
                        f"it writes to its argument {name}, which the reference leaves as it was; work on a copy"
                    )
        self._put_back()

    def _put_back(self) -> None:
        if self._elsewhere is not None and self._elsewhere.place is not None:
            self._elsewhere.place.filled(self._form, self._elsewhere.place.drawn)
        self._elsewhere = None


def _restoring(call: Callable[[], Any], fillings: list[Callable[[], Any]]) -> Callable[[], Any]:
    """Put back what the call reads and changes, before it."""

    def restore_and_call() -> Any:
        for put_back in fillings:
            put_back()
        return call()

    return restore_and_call


def _filling(made: Any, leaf: Leaf, drawn: Any) -> Callable[[], Any]:
    """Copy in its own layout, from memory in the same one."""
    kept = leaf.made(drawn)
    if leaf.kind == "numbers":
        return partial(made.__setitem__, slice(None), kept)
    return partial(made.copy_, kept) if leaf.kind == "tensor" else partial(np.copyto, made, kept)


def _bytes(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

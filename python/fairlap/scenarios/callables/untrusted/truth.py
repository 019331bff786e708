"""What the right answer to drawn inputs is, and whether the bytes that a contestant left are that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments
from fairlap.engine.timed_calls import name_of
from fairlap.errors import InvalidRequest
from fairlap.scenarios.callables.answers.arrays import Leaf, leaves_of
from fairlap.scenarios.callables.answers.drawn import copy_of
from fairlap.scenarios.callables.answers.right_answers import truth as of_callables
from fairlap.scenarios.callables.answers.wrong import why_wrong
from fairlap.scenarios.callables.untrusted.layout import BFLOAT16, PLAIN, Layout, built, layout_of, nested, widened
from fairlap.scenarios.callables.untrusted.layout import Leaf as StoredLeaf

Array = np.ndarray[Any, Any]


class Reference:
    """The user's reference, which decides the form of every answer."""

    def __init__(self, function: Callable[..., Any], drawn: Any) -> None:
        self._function, self._name = function, name_of(function)
        self.arguments = layout_of(drawn, "what --inputs returned")
        first = of_callables.evaluated(self._numbers, self._name, copy_of(_arguments(drawn)))
        if not first.answer:
            raise InvalidRequest("the reference returned no array, tensor or number, so no answer can be checked")
        self.answers = layout_of(self._answer(copy_of(_arguments(drawn))), "the answer of the reference")
        of_callables.require_no_drawing(self._numbers, self._name, _arguments(drawn), self.truth(drawn).found)

    def truth(self, drawn: Any) -> Truth:
        return Truth(self.answers, of_callables.truth_of(self._numbers, self._name, _arguments(drawn)))

    def _answer(self, arguments: Arguments) -> Any:
        return self._function(*arguments.args, **arguments.kwargs)

    def _numbers(self, arguments: Arguments) -> Any:
        """Leave out texts, which are the same in all answers; names of parts are texts in shared memory."""
        return built(
            nested(self._answer(arguments), lambda value: ["plain", None if type(value) in PLAIN else value]), _no_leaf
        )


@dataclass(frozen=True)
class Truth:
    """Of one call."""

    layout: Layout
    found: of_callables.Truth

    def why_wrong(self, answer: Sequence[Array]) -> str:
        """Compare stored answers, one for each leaf; empty where all are right."""
        stored = self.layout.leaves
        tree = built(_without_texts(self.layout.nesting), lambda number: _value(answer[number], stored[number]))
        for name, leaf in leaves_of(tree).items():
            true = self.found.leaves[name]
            if why := why_wrong(name, true, Leaf(leaf.values, true.own.kind)):  # the layout leaves no other type
                return why
        return ""


def _arguments(drawn: Any) -> Arguments:
    """Take a tuple's items, a mapping's keywords or one value."""
    if isinstance(drawn, Mapping):
        return Arguments((), drawn)
    return Arguments(drawn if isinstance(drawn, tuple) else (drawn,))


def _value(bits: Array, leaf: StoredLeaf) -> Any:
    """Read what is stored as what the reference's answer would be, bfloat16 as float32."""
    values = widened(bits, leaf).astype(np.float32) if leaf.dtype == BFLOAT16 else np.array(bits)
    return values.item() if leaf.library == "python" else values


def _without_texts(nesting: Any) -> Any:
    kind, *rest = nesting
    if kind == "plain":
        return ["plain", None]
    if kind == "leaf":
        return nesting
    if kind == "dict":
        return [kind, {name: _without_texts(each) for name, each in rest[0].items()}]
    return [kind, *(_without_texts(each) for each in rest)]


def _no_leaf(number: int) -> object:
    raise AssertionError(number)

"""Draw the arguments of calls by the user's function, each set from a seed of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.errors import described
from fairlap.models.arrays import Arrays
from fairlap.models.sources.callables.arguments import Arguments, Leaf, drawn_arguments
from fairlap.models.sources.callables.functions import sizes_of
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.proof import DrawsNumbers
from fairlap.request.fields.source import Source

FURTHER = "further-"
"""With a number, the name of a set of which nothing is known but that the arguments are valid."""

_FURTHER_FROM = 4000  # added to the seed
_FURTHER_SETS = 8
_FEWEST_FURTHER_SETS = 3
_MOST_FURTHER_BYTES = 2**28
CODE = "E_SOURCE_INPUTS"


class Drawing:
    """``names`` are those of the reference's parameters."""

    def __init__(self, source: Source, draw: Callable[..., Any], names: Sequence[str]) -> None:
        self.name, self.sizes = source.inputs, dict(sizes_of(draw))
        self._draw, self._names = draw, names
        for size, value in source.dims:
            if size not in self.sizes:
                listed = f"its sizes are {', '.join(self.sizes)}" if self.sizes else "it has no parameter with a number"
                raise SourceError(f"{self.name} has no size named {size}; {listed}", code="E_MODEL_DIMENSIONS")
            self.sizes[size] = value

    def drawn(self, seed: int) -> tuple[Arguments, Arrays]:
        try:
            returned = self._draw(np.random.default_rng(seed), **self.sizes)
        except (Exception, SystemExit) as error:
            raise SourceError(f"{self.name} raised {described(error)}", code="E_REFERENCE") from error
        arguments, stored = drawn_arguments(returned, self._names)
        if not stored:
            raise SourceError(
                f"{self.name} draws no arguments, so nothing could show that a callable computes", code=CODE
            )
        return arguments, stored

    def sets(self, form: Arguments, seeds: Mapping[str, int], written: Sequence[str]) -> dict[str, Arrays]:
        """Draw all sets, in the form of the first; ``written`` are arguments whose content means nothing."""
        found = {which: self._in_form(form, seed) for which, seed in seeds.items()}
        first, second = list(found)[:2]
        read = [name for name in form.leaves() if name not in written]
        if _differ(found[first], self._in_form(form, seeds[first]), read):
            raise DrawsNumbers(
                f"{self.name} draws other arguments from the same generator; draw all of them from the one that it is "
                "given, so that the race can be repeated"
            )
        if not _differ(found[first], found[second], read):
            raise SourceError(
                f"{self.name} draws the same arguments each time, so that an old answer would be right; draw them from "
                "the generator that it is given",
                code=CODE,
            )
        return found

    def further_sets(self, form: Arguments, seed: int) -> dict[str, Arrays]:
        """Draw as many as do not take too much of the disk."""
        found: dict[str, Arrays] = {}
        size = 0
        for number in range(_FURTHER_SETS):
            if number >= _FEWEST_FURTHER_SETS and size > _MOST_FURTHER_BYTES:
                break
            found[f"{FURTHER}{number}"] = own = self._in_form(form, seed + _FURTHER_FROM + number)
            size += sum(array.nbytes for array in own.values())
        return found

    def _in_form(self, form: Arguments, seed: int) -> Arrays:
        arguments, stored = self.drawn(seed)
        if arguments != form:
            raise SourceError(f"{self.name} {_difference(form, arguments)}; draw the same form each time", code=CODE)
        return stored


def _differ(first: Arrays, second: Arrays, names: Sequence[str]) -> list[str]:
    """Compare bytes, since NaN is not equal to itself."""
    return [name for name in names if first[name].tobytes() != second[name].tobytes()]


def _difference(form: Arguments, other: Arguments) -> str:
    before, after = form.leaves(), other.leaves()
    for name, leaf in before.items():
        if name in after and after[name] != leaf:
            return f"draws {name} as {_described(leaf)} and as {_described(after[name])}"
    return "draws other arguments from one time to the next"


def _described(leaf: Leaf) -> str:
    return f"{leaf.dtype} {list(leaf.shape)}"

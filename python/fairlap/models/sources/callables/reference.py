"""The reference of callables: what it answers, in float64 or in its own type, and which arguments it writes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.errors import described
from fairlap.models.arrays import Arrays
from fairlap.models.sources.callables.answers import CHANGED, Answer, answer_like, compared, named_parts
from fairlap.models.sources.callables.arguments import Arguments, Leaf, numbers_of, stored_value
from fairlap.models.sources.contract import SourceError
from fairlap.models.spec import UNIT_ROUNDOFF_OF_TYPE

Array = npt.NDArray[Any]
EXACT_ROUNDOFF = UNIT_ROUNDOFF_OF_TYPE["float64"]


class Form(msgspec.Struct, frozen=True):
    """What calls take and answer, as a file next to the arrays. ``changed`` are arguments that the reference writes to.

    Of those, what is in the ``restored`` ones decides the answer: it is put back before each call.
    """

    arguments: Arguments
    answer: Answer
    changed: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


def roundoff_of(dtype: str) -> float:
    return UNIT_ROUNDOFF_OF_TYPE.get(dtype, EXACT_ROUNDOFF)


@dataclass(frozen=True)
class Called:
    """One call that was made: what it returned, and its arguments after it."""

    result: Any
    leaves: Mapping[str, Any]
    stored: Arrays  # before it
    wide: bool

    def changed(self, leaves: Mapping[str, Leaf], given: Mapping[str, Array]) -> set[str]:
        """Name the arguments that hold something else than what they were ``given``."""
        return {name for name, leaf in leaves.items() if not _same(self.numbers(leaf), given[name])}

    def numbers(self, leaf: Leaf) -> Array:
        """Read an argument after the call."""
        value = self.leaves[leaf.name]
        if self.wide and leaf.is_float:
            return np.asarray(value.detach().numpy() if leaf.kind == "tensor" else value)
        stored = stored_value(leaf, value)
        return numbers_of(leaf, stored) if stored.size == self.stored[leaf.name].size else stored


class Reference:
    """A user's function, by its name. It is evaluated on numbers that are moved by their rounding, too."""

    def __init__(self, name: str, function: Callable[..., Any], arguments: Arguments) -> None:
        self.name, self.arguments = name, arguments
        self.leaves = arguments.leaves()
        self._function = function

    def called(
        self,
        stored: Arrays,
        *,
        wide: bool,
        roundoff: float = 0.0,
        seed: int | None = None,
        other: Arrays | None = None,
    ) -> tuple[Called, dict[str, Array]]:
        """Call it once, and return the numbers that it was given as well. Raises SourceError for what it raises.

        Floats are converted to float64 where it is ``wide``; with a ``seed`` each is moved by the ``roundoff``.
        ``other`` are numbers of arguments that take the place of the stored ones.
        """
        numbers = {name: numbers_of(leaf, stored[name]) for name, leaf in self.leaves.items()} | dict(other or {})
        for name, leaf in self.leaves.items():
            if leaf.is_float:
                # In float64 a rounding of its own would vanish half of the time, and so it would in any own type.
                step = roundoff if wide and roundoff > EXACT_ROUNDOFF else 2 * roundoff
                numbers[name] = _converted(leaf, numbers[name], wide=wide, step=step, seed=seed)
        if wide:
            given = {
                name: numbers[name] for name, leaf in self.leaves.items() if leaf.is_float or name in (other or {})
            }
            made = self.arguments.made(stored, given)
        else:
            made = self.arguments.made({name: _stored_again(leaf, numbers[name]) for name, leaf in self.leaves.items()})
        try:
            with np.errstate(all="ignore"):
                result = self._function(*made.positional, **made.keywords)
        except (Exception, SystemExit) as error:
            raise SourceError(f"{self.name} raised {described(error)}", code="E_REFERENCE") from error
        return Called(result, made.leaves, stored, wide), numbers

    def form(self, stored: Arrays) -> tuple[Form, dict[str, str]]:
        """Describe its calls, and the types of its answers, from one on these arguments in their own type."""
        called, given = self.called(stored, wide=False)
        changed = tuple(name for name in self.leaves if name in called.changed(self.leaves, given))
        try:
            answer = answer_like(called.result)
        except TypeError as error:
            raise SourceError(f"{self.name} returned no numbers: {error}", code="E_REFERENCE") from None
        form = Form(self.arguments, answer, changed)
        answers = self.answers(form, called)
        if not answers:
            raise SourceError(
                f"{self.name} returns nothing and writes to none of its arguments, so there is nothing to compare",
                code="E_REFERENCE",
            )
        types = {name: str(array.dtype) for name, array in answers.items()}
        return msgspec.structs.replace(form, restored=tuple(self._read_before_written(form, stored, answers))), types

    def answers(self, form: Form, called: Called) -> dict[str, Array]:
        found = named_parts(form.answer, called.result)
        for name in form.changed:
            found[f"{CHANGED} {name}"] = compared(called.numbers(self.leaves[name]))
        return found

    def _read_before_written(self, form: Form, stored: Arrays, answers: Mapping[str, Array]) -> list[str]:
        """Find arguments whose old content decides the answer, by putting something else into each."""
        rng = np.random.default_rng(0)
        found = []
        for name in form.changed:
            numbers = numbers_of(self.leaves[name], stored[name])
            other = rng.integers(0, 2, numbers.shape).astype(numbers.dtype)
            try:
                again, _ = self.called(stored, wide=False, other={name: other})
                same = self.answers(form, again)
            except SourceError:
                same = {}
            if any(each not in same or not _same(array, same[each]) for each, array in answers.items()):
                found.append(name)
        return found


def _converted(leaf: Leaf, values: Array, *, wide: bool, step: float, seed: int | None) -> Array:
    if not wide and seed is None:
        return values
    found = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    if seed is not None:
        rng = np.random.default_rng([seed, *leaf.name.encode()])
        with np.errstate(all="ignore"):  # what an argument holds that is written to may be anything
            found = found * (1 + step * (2.0 * rng.integers(0, 2, values.shape) - 1))
    return found if wide else found.astype(values.dtype)


def _stored_again(leaf: Leaf, numbers: Array) -> Array:
    """Undo ``numbers_of``; to bfloat16 round to nearest."""
    if leaf.dtype == "bfloat16":
        bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return rounded.reshape(-1).view(np.uint8).reshape(*leaf.shape, 2)
    return numbers


def _same(first: Array, second: Array) -> bool:
    if first.shape != second.shape:
        return False
    with np.errstate(all="ignore"):
        return bool(((first == second) | ((first != first) & (second != second))).all())

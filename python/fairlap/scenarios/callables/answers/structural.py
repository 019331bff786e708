"""Inputs of other kinds than those that are timed: sizes, layouts in memory and values on which callables go wrong.

A callable that is right for usual inputs may be wrong for one element, an odd size, a view into a larger array, or
values close to zero. What is wrong is shrunk to the smallest sizes that show it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments
from fairlap.errors import NotAvailable
from fairlap.scenarios.callables.answers.arrays import SMALLEST_NORMAL, Array
from fairlap.scenarios.callables.answers.drawn import Draw, changed, leaves_of_arguments

if TYPE_CHECKING:
    from fairlap.scenarios.callables.answers.check import Answers

STRUCTURAL = "structural"
_SIZES = (1, 2, 3, 7, 16, 17, 33, 64, 127)
_SEEDS = 4
_MOST_SHRINKING = 200
_FIRST_NUMBER = 1_000_000  # far from the numbers of the timed inputs
_SECOND_NUMBER = 2  # of the timed inputs


def _zeros(values: Array, rng: np.random.Generator) -> Array:
    return np.zeros_like(values)


def _ones(values: Array, rng: np.random.Generator) -> Array:
    return np.ones_like(values)


def _denormal(values: Array, rng: np.random.Generator) -> Array:
    smallest = SMALLEST_NORMAL.get(values.dtype.name)
    return values if smallest is None else (rng.uniform(-1, 1, values.shape) * smallest).astype(values.dtype)


def _clustered(values: Array, rng: np.random.Generator) -> Array:
    """All close to one value, so that differences and variances cancel."""
    if values.dtype.kind != "f" or not values.size:
        return np.full_like(values, values.flat[0]) if values.size else values
    found: Array = values.flat[0] * (1 + 0.001 * rng.uniform(-1, 1, values.shape))
    return found.astype(values.dtype)


def _mostly_zero(values: Array, rng: np.random.Generator) -> Array:
    found: Array = np.where(rng.random(values.shape) < 0.9, np.zeros_like(values), values)
    return found


def _negated(values: Array, rng: np.random.Generator) -> Array:
    found: Array = np.negative(values) if values.dtype.kind in "fc" else values
    return found


def _large(values: Array, rng: np.random.Generator) -> Array:
    return (values * np.asarray(100, values.dtype)).astype(values.dtype) if values.dtype.kind == "f" else values


def _sorted(values: Array, rng: np.random.Generator) -> Array:
    return np.sort(values, axis=None).reshape(values.shape) if values.dtype.kind in "fiu" else values


def _one_hot(values: Array, rng: np.random.Generator) -> Array:
    """All zero but one."""
    if values.dtype.kind != "f" or not values.size:
        return values
    found = np.zeros_like(values)
    place = int(rng.integers(values.size))
    found.flat[place] = values.flat[place]
    return found


def transposed(values: Array) -> Array:
    """Lay out by columns."""
    return np.asfortranarray(values) if values.ndim else values


def strided(values: Array) -> Array:
    """Put the values into every second element of a larger array."""
    if not values.ndim:
        return values
    larger = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
    view = larger[..., ::2]
    view[...] = values
    return view


def _reversed(values: Array) -> Array:
    """Laid out backwards in memory."""
    if not values.ndim:
        return values
    turned = np.ascontiguousarray(values[..., ::-1])
    return turned[..., ::-1]


def _offset(values: Array) -> Array:
    """One element into its memory, so that it is not aligned to more than that."""
    memory = np.zeros(values.size + 1, values.dtype)
    view = memory[1:].reshape(values.shape)
    view[...] = values
    return view


VALUES: Mapping[str, Callable[[Array, np.random.Generator], Array]] = {
    "zeros": _zeros,
    "ones": _ones,
    "denormal": _denormal,
    "clustered": _clustered,
    "mostly zero": _mostly_zero,
    "all zero but one": _one_hot,
    "negated": _negated,
    "a hundred times as large": _large,
    "sorted": _sorted,
}
LAYOUTS: Mapping[str, Callable[[Array], Array]] = {
    "transposed in memory": transposed,
    "strided": strided,
    "backwards in memory": _reversed,
    "offset by one element": _offset,
}


@dataclass(frozen=True)
class Case:
    sizes: Mapping[str, int] = field(default_factory=dict)
    values: str = ""
    layout: str = ""
    seed: int = 0

    def __str__(self) -> str:
        said = [f"{name}={size}" for name, size in self.sizes.items()]
        said += [each for each in (self.values, self.layout) if each]
        return ", ".join([*said, f"seed {self.seed}"])

    def arguments(self, draw: Draw) -> Arguments:
        found = draw.arguments(_FIRST_NUMBER + self.seed, **self.sizes)
        rng = np.random.default_rng([draw.seed, self.seed])
        if self.values:
            found = changed(found, lambda values: VALUES[self.values](values, rng) if values.size > 1 else values)
        return changed(found, LAYOUTS[self.layout]) if self.layout else found


def cases_of(draw: Draw) -> Iterator[Case]:
    """Each size, value and layout alone, and some together."""
    for seed in range(_SEEDS):
        yield Case(seed=seed)
    for values in VALUES:
        yield Case(values=values)
    for layout in LAYOUTS:
        yield Case(layout=layout)
    sizes = [dict.fromkeys(draw.sizes, size) for size in _SIZES] if draw.sizes else []
    for name, usual in draw.sizes.items():
        sizes += [{name: size} for size in (*_SIZES, usual - 1, usual + 1) if size > 0]
    for number, chosen in enumerate(sizes):
        yield Case(chosen, seed=number)
    for (number, chosen), layout in itertools.product(enumerate(sizes[: len(_SIZES)]), LAYOUTS):
        yield Case(chosen, layout=layout, seed=number)


def warn_of_one_size(answers: Answers, draw: Draw) -> None:
    """Note that all drawn arguments that were checked have the same sizes; numbers alone have none.

    Where checking took so long that there was time for one call only, the next arguments are looked at too.
    """
    drawn = [leaves_of_arguments(each) for each in (*answers.checked_on, draw.arguments(_SECOND_NUMBER))]
    shapes = [{name: leaf.values.shape for name, leaf in each.items()} for each in drawn]
    has_arrays = any(leaf.values.size > 1 for each in drawn for leaf in each.values())
    if has_arrays and all(each == shapes[0] for each in shapes):
        _warn_of_one_size(answers, draw)


def _warn_of_one_size(answers: Answers, draw: Draw) -> None:
    answers.notice("W_ONE_SIZE", f"{draw.name} drew one size, so other sizes were not tried; {_way_to_others(draw)}")


def _way_to_others(draw: Draw) -> str:
    if draw.sizes:
        return "structural inputs try them"
    return "give it a size to vary, such as n=1000, and add structural inputs"


def check_structural(answers: Answers, draw: Draw) -> None:
    """Accuse those that are wrong on any of the cases. Cases outside of what the reference takes are left out."""
    if not draw.sizes:
        _warn_of_one_size(answers, draw)
    seen = set[str]()
    for case in cases_of(draw):
        if str(case) in seen:
            continue
        seen.add(str(case))
        wrong = _wrong_on(answers, draw, case)
        if wrong is None:
            continue
        answers.structural_cases += 1
        for name in wrong:
            smallest = _shrunk(answers, draw, case, name)
            found = _wrong_on(answers, draw, smallest) or {}
            answers.accuse(name, f"{found.get(name) or wrong[name]}; the inputs: {smallest}")


def _wrong_on(answers: Answers, draw: Draw, case: Case) -> dict[str, str] | None:
    """Say what is wrong, by name; None where the reference does not take such inputs."""
    try:
        arguments = case.arguments(draw)
    except Exception:
        return None
    return answers.wrong_on(arguments)


def _shrunk(answers: Answers, draw: Draw, case: Case, name: str) -> Case:
    """Find the smallest sizes with which it is still wrong."""
    if not draw.sizes:
        return case
    try:
        from hypothesis import HealthCheck, Phase, find, settings
        from hypothesis import strategies as some
        from hypothesis.errors import NoSuchExample
    except ImportError:
        raise NotAvailable(
            "structural inputs need Hypothesis, which finds the smallest wrong case: pip install hypothesis"
        ) from None
    whole = {size_name: case.sizes.get(size_name, usual) for size_name, usual in draw.sizes.items()}
    sizes = some.fixed_dictionaries({each: some.integers(1, size) for each, size in whole.items()})
    how: Any = settings(
        max_examples=_MOST_SHRINKING,
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )

    def is_wrong(chosen: dict[str, int]) -> bool:
        return name in (_wrong_on(answers, draw, Case(chosen, case.values, case.layout, case.seed)) or {})

    try:
        return Case(find(sizes, is_wrong, settings=how), case.values, case.layout, case.seed)
    except NoSuchExample:
        return case

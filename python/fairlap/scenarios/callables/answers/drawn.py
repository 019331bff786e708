"""The arguments of calls, as the user's function draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments
from fairlap.engine.timed_calls import name_of
from fairlap.errors import FairlapError, InvalidRequest, described
from fairlap.models.sources.callables.functions import sizes_of
from fairlap.scenarios.callables.answers.arrays import Array, Leaves, copied, mapped, views_of

ARGUMENT = "its argument"
_TYPES: Mapping[str, type[np.float64 | np.complex128]] = {"f": np.float64, "c": np.complex128}


@dataclass(frozen=True)
class Draw:
    """``sizes`` are the function's keyword parameters that have whole numbers as defaults."""

    function: Callable[..., Any] | None
    name: str
    seed: int
    sizes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, function: Callable[..., Any] | None, seed: int) -> Draw:
        if function is None:
            return cls(None, "", seed)
        if not callable(function):
            raise InvalidRequest(f"inputs= must be a function that draws the arguments, not {function!r}")
        return cls(function, name_of(function), seed, sizes_of(function))

    def arguments(self, number: int, **sizes: int) -> Arguments:
        """Draw with a generator of its own for each number."""
        if self.function is None:
            return Arguments()
        try:
            drawn = self.function(np.random.default_rng([self.seed, number]), **sizes)
        except FairlapError:
            raise
        except (Exception, SystemExit) as error:
            of = "".join(f", {name}={size}" for name, size in sizes.items())
            raise InvalidRequest(
                f"{self.name}(rng{of}), which draws the inputs, raised {described(error)}", code="E_REFERENCE"
            ) from error
        if isinstance(drawn, Mapping):
            return Arguments((), dict(drawn))
        return Arguments(drawn if isinstance(drawn, tuple) else (drawn,), {})


def copy_of(arguments: Arguments) -> Arguments:
    return Arguments(copied(arguments.args), copied(arguments.kwargs))


def changed(arguments: Arguments, change: Callable[[Array], Array]) -> Arguments:
    return Arguments(mapped(arguments.args, change), mapped(arguments.kwargs, change))


def in_float64(values: Array) -> Array:
    """Copy them, as float64 or complex128 where they are inexact."""
    kind = "f" if values.dtype.name == "bfloat16" else values.dtype.kind
    return values.astype(_TYPES[kind]) if kind in _TYPES else np.array(values)


def float64_of(values: Array) -> type[np.float64 | np.complex128]:
    """Name the type that inexact ones have in float64."""
    return _TYPES[values.dtype.kind]


def leaves_of_arguments(arguments: Arguments) -> Leaves:
    """Find the arrays, numbers and texts among them, where they are in memory."""
    named = (*enumerate(arguments.args), *arguments.kwargs.items())
    return {name: leaf for key, value in named for name, leaf in leaves_of_argument(key, value).items()}


def leaves_of_argument(key: object, value: Any) -> Leaves:
    """Find those of the argument with this place or name."""
    try:
        return views_of(value, f"{ARGUMENT} {key}")
    except Exception:  # an object of the user's own
        return {}

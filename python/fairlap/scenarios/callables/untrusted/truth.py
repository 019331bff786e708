"""What the right answer to drawn inputs is: the reference in float64, and how far rounding may take one from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlap.errors import InvalidRequest, described
from fairlap.scenarios.callables.untrusted.layout import (
    BFLOAT16,
    Layout,
    Leaf,
    built,
    layout_of,
    leaves_of,
    nested,
    stored,
    widened,
)

Array = np.ndarray[Any, Any]
_TIMES_THE_REFERENCE = 16.0  # as far as it is off in the contestants' precision, or with inputs off by one rounding
_ROUNDINGS = 64.0  # of the largest element, where the reference happens to be exact
_ROUNDINGS_OF_DOUBLES = 1024.0  # nothing wider shows how far the reference is off
_EPSILON_OF_BFLOAT16 = 2.0**-7


def called(function: Callable[..., Any], arguments: Any) -> Any:
    """Call with a tuple's items, a mapping's keywords or one value."""
    if isinstance(arguments, tuple):
        return function(*arguments)
    return function(**arguments) if isinstance(arguments, Mapping) else function(arguments)


class Reference:
    """The user's reference, which decides the form of every answer."""

    def __init__(self, function: Callable[..., Any], arguments: Any) -> None:
        self._function = function
        self.arguments = layout_of(arguments, "what --inputs returned")
        answer = self._answer(_copied(arguments))
        self.answers = layout_of(answer, "the answer of the reference")
        if not self.answers.leaves:
            raise InvalidRequest("the reference returned no array, tensor or number, so no answer can be checked")
        self._epsilon = max(
            _epsilon_of(np.float64), *(_epsilon(leaf) for leaf in (*self.arguments.leaves, *self.answers.leaves))
        )

    def truth(self, arguments: Any) -> Truth:
        exact = leaves_of(self._answer(_wide(arguments)))
        given = leaves_of(self._answer(_copied(arguments)))
        leaves = self.answers.leaves
        if len(exact) != len(leaves) or len(given) != len(leaves):
            raise InvalidRequest("the reference must return answers of the same form for all inputs")
        wanted = [_as_wide(value) for value in exact]
        rounded = [widened(stored(value), leaf) for value, leaf in zip(given, leaves, strict=True)]
        moved = [_as_wide(value) for value in leaves_of(self._answer(self._moved(_wide(arguments))))]
        allowed = [self._allowed(*each) for each in zip(wanted, rounded, moved, leaves, strict=True)]
        return Truth(self.answers, wanted, rounded, allowed)

    def _moved(self, arguments: Any) -> Any:
        """Move every floating-point element by up to one rounding: what cancels shows how far it may be off."""
        sign = np.random.default_rng(1)

        def move(value: Any) -> Any:
            if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc":
                return np.asarray(value) * (1 + self._epsilon * sign.choice((-1.0, 1.0), value.shape))
            if hasattr(value, "is_floating_point") and (value.is_floating_point() or value.is_complex()):
                import torch

                return value * (1 + self._epsilon * torch.from_numpy(sign.choice((-1.0, 1.0), tuple(value.shape))))
            return value

        return _mapped(arguments, move)

    def _allowed(self, wanted: Array, rounded: Array, moved: Array, leaf: Leaf) -> float:
        if leaf.stored_as.kind not in "fc" and leaf.dtype != BFLOAT16:
            return 0.0
        if not wanted.shape == rounded.shape == moved.shape:
            raise InvalidRequest("the reference returns another shape in float64 than in the inputs' precision")
        finite = np.isfinite(wanted) & np.isfinite(rounded) & np.isfinite(moved)
        off = max(float(np.abs(wanted - other)[finite].max(initial=0.0)) for other in (rounded, moved))
        largest = float(np.abs(wanted)[finite].max(initial=0.0))
        roundings = _ROUNDINGS if self._epsilon > _epsilon_of(np.float64) else _ROUNDINGS_OF_DOUBLES
        roundings = min(roundings, 0.05 / self._epsilon)  # of bfloat16, 64 would be half the value
        return max(_TIMES_THE_REFERENCE * off, roundings * self._epsilon * largest)

    def _answer(self, arguments: Any) -> Any:
        try:
            return called(self._function, arguments)
        except Exception as error:
            raise InvalidRequest(f"the reference raised {described(error)}") from error


@dataclass(frozen=True)
class Truth:
    """Of one call."""

    layout: Layout
    wanted: Sequence[Array]
    rounded: Sequence[Array]  # the reference's answer in the inputs' precision, which integers may follow
    allowed: Sequence[float]

    def why_wrong(self, answer: Sequence[Array]) -> str:
        """Compare stored answers, one for each leaf; empty where all are right."""
        for place, leaf in enumerate(self.layout.leaves):
            got = widened(answer[place], leaf)
            if why := _why_wrong(got, self.wanted[place], self.rounded[place], self.allowed[place]):
                return why if len(self.layout.leaves) == 1 else f"answer {place + 1}: {why}"
        return ""


def _why_wrong(got: Array, wanted: Array, rounded: Array, allowed: float) -> str:
    if not allowed and wanted.dtype.kind not in "fc":
        wrong = (got != wanted) & (got != rounded)
        return f"{int(wrong.sum()):,} of {wrong.size:,} elements are wrong" if wrong.any() else ""
    with np.errstate(invalid="ignore", over="ignore"):
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        off = np.where(same, 0.0, np.abs(got - wanted))
    wrong = ~(off <= allowed)
    if not wrong.any():
        return ""
    if not np.isfinite(off[wrong]).all():
        return f"{int(wrong.sum()):,} of {wrong.size:,} elements are wrong, some of them not finite"
    worst = float(off.max())
    return f"{int(wrong.sum()):,} of {wrong.size:,} elements are wrong, by up to {worst:.3g} (allowed: {allowed:.3g})"


def _wide(tree: Any) -> Any:
    """Copy arguments with floating-point arrays and tensors widened to float64."""

    def wide(value: Any) -> Any:
        if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "is_floating_point"):
            if value.is_complex():
                import torch

                return value.to(torch.complex128)
            return value.double() if value.is_floating_point() else value.clone()
        if isinstance(value, np.ndarray | np.generic):
            wider = {"f": np.float64, "c": np.complex128}.get(value.dtype.kind)
            return value.astype(wider) if wider else value.copy()
        return value

    return _mapped(tree, wide)


def _copied(tree: Any) -> Any:
    """Copy arguments for a reference, which may write into them."""
    return _mapped(
        tree,
        lambda value: value.clone() if hasattr(value, "clone") else value.copy() if hasattr(value, "copy") else value,
    )


def _mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    return built(nested(tree, lambda value: ["plain", function(value)]), lambda _: None)


def _as_wide(value: Any) -> Array:
    array = stored(value.float() if str(getattr(value, "dtype", "")) == "torch.bfloat16" else value)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    return array.astype(np.complex128) if array.dtype.kind == "c" else array


def _epsilon(leaf: Leaf) -> float:
    if leaf.dtype == BFLOAT16:
        return _EPSILON_OF_BFLOAT16
    return _epsilon_of(leaf.stored_as) if leaf.stored_as.kind in "fc" and leaf.library != "python" else 0.0


def _epsilon_of(dtype: Any) -> float:
    return float(np.finfo(dtype).eps)

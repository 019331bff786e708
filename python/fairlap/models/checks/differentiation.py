"""Exact gradients of a float64 reference: NumPy code as it stands, differentiated backwards.

A reference is plain NumPy. Called with ``Traced`` arrays in place of the weights it runs unchanged: NumPy hands every
operation on them to this module, which keeps what each result was made of. ``gradients`` then follows the chain rule
from the loss back to the weights. Operations that no reference uses are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fairlap.models.checks.derivatives import PLAIN, RULES, Array, Backward, NotDifferentiable, Part


class Traced(NDArrayOperatorsMixin):
    """An array that remembers what it was made of."""

    def __init__(self, value: Any, made_of: Sequence[tuple[Traced, Callable[[Array], Array | Part]]] = ()) -> None:
        self.value: Array = np.asanyarray(value)  # of a kind that rounds, too
        self.made_of = made_of

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype

    @property
    def T(self) -> Traced:  # noqa: N802  (NumPy's name)
        return self.transpose()

    def __len__(self) -> int:
        return len(self.value)

    def __array__(self, *_arguments: Any, **_named: Any) -> Array:
        raise NotDifferentiable("an array that is being differentiated cannot become a plain one")

    def __getitem__(self, key: Any) -> Traced:
        parts = key if isinstance(key, tuple) else (key,)
        is_plain = all(each is None or each is Ellipsis or isinstance(each, int | slice) for each in parts)

        def backward(gradient: Array) -> Array | Part:
            if is_plain:
                return Part(key, gradient, self.shape)
            whole = np.zeros(self.shape, gradient.dtype)
            np.add.at(whole, key, gradient)  # the same element may have been taken several times
            return whole

        return Traced(self.value[key], [(self, backward)])

    def reshape(self, *shape: Any) -> Traced:
        return Traced(self.value.reshape(*shape), [(self, lambda gradient: gradient.reshape(self.shape))])

    def transpose(self, *axes: Any) -> Traced:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = tuple(order) or tuple(reversed(range(self.ndim)))
        back = np.argsort(order)
        return Traced(self.value.transpose(order), [(self, lambda gradient: gradient.transpose(back))])

    def swapaxes(self, one: int, other: int) -> Traced:
        return Traced(self.value.swapaxes(one, other), [(self, lambda gradient: gradient.swapaxes(one, other))])

    def sum(self, axis: Any = None, keepdims: bool = False) -> Traced:
        def backward(gradient: Array) -> Array:
            return np.broadcast_to(_kept(gradient, self.value, axis, keepdims), self.shape)

        return Traced(self.value.sum(axis=axis, keepdims=keepdims), [(self, backward)])

    def mean(self, axis: Any = None, keepdims: bool = False) -> Traced:
        total = self.sum(axis=axis, keepdims=keepdims)
        mean: Traced = total / (self.size / total.size)
        return mean

    def max(self, axis: Any = None, keepdims: bool = False) -> Traced:
        """Of equal elements the first one gets the gradient, as everywhere."""
        largest = self.value.max(axis=axis, keepdims=True)

        def backward(gradient: Array) -> Array:
            axes = tuple(range(self.ndim)) if axis is None else _places(axis, self.ndim)
            rest = tuple(place for place in range(self.ndim) if place not in axes)
            order = rest + axes
            is_largest = (self.value == largest).transpose(order)
            rows = is_largest.reshape(*is_largest.shape[: len(rest)], -1)
            first = rows & (rows.cumsum(axis=-1) == 1)
            chosen = first.reshape(is_largest.shape).transpose(np.argsort(order))
            mine: Array = chosen * _kept(gradient, self.value, axis, keepdims)
            return mine

        value = largest if keepdims else self.value.max(axis=axis)
        return Traced(value, [(self, backward)])

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        values = [plain(each) for each in inputs]
        if ufunc in PLAIN and method == "__call__":
            return ufunc(*values, **named)
        rule = RULES.get(ufunc.__name__)
        if rule is None or method != "__call__" or named:
            raise NotDifferentiable(f"numpy.{ufunc.__name__} has no rule")
        result = ufunc(*values)
        rules = rule(result, *values)
        made_of = [
            (each, _summed(backward, each.shape))
            for each, backward in zip(inputs, rules, strict=True)
            if isinstance(each, Traced)
        ]
        return Traced(result, made_of)

    def __array_function__(self, function: Any, _types: Any, arguments: Any, named: Any) -> Any:
        rule = _FUNCTIONS.get(function.__name__)
        if rule is None:
            raise NotDifferentiable(f"numpy.{function.__name__} has no rule")
        return rule(*arguments, **named)


def gradients(loss: Callable[[Mapping[str, Any]], Any], weights: Mapping[str, Array]) -> tuple[float, dict[str, Array]]:
    """Compute the loss, and its gradient by each weight; zeros where the loss does not depend on one."""
    traced = {name: Traced(array) for name, array in weights.items()}
    result = loss(traced)
    found = _followed_back(result) if isinstance(result, Traced) else {}
    return float(plain(result)), {
        name: np.ascontiguousarray(found.get(id(each), np.zeros(each.shape))) for name, each in traced.items()
    }


def _followed_back(result: Traced) -> dict[int, Array]:
    """Compute the gradient at everything that the result was made of, by identity."""
    found: dict[int, Array] = {id(result): np.ones(result.shape, result.dtype)}
    sums: set[int] = set()  # what nothing else refers to, so that it can be added to in place
    for made in reversed(_in_order(result)):
        gradient = found[id(made)]
        for operand, backward in made.made_of:
            place, part = id(operand), backward(gradient)
            if isinstance(part, Part):
                if place not in sums:
                    found[place] = _whole(part, found.get(place))
                    sums.add(place)
                found[place][part.key] += part.gradient
            elif place in found:
                found[place] = np.asarray(found[place] + part)
                sums.add(place)
            else:
                found[place] = part
    return found


def _whole(part: Part, so_far: Array | None) -> Array:
    whole = np.zeros(part.shape, part.gradient.dtype)
    if so_far is not None:
        whole += so_far
    return whole


def _in_order(result: Traced) -> list[Traced]:
    """Everything that the result was made of, operands first."""
    order: list[Traced] = []
    seen: set[int] = set()
    waiting: list[tuple[Traced, bool]] = [(result, False)]
    while waiting:
        made, operands_done = waiting.pop()
        if operands_done:
            order.append(made)
        elif id(made) not in seen:
            seen.add(id(made))
            waiting.append((made, True))
            waiting += [(operand, False) for operand, _ in made.made_of]
    return order


def plain(each: Any) -> Any:
    """Take the array without its origin."""
    return each.value if isinstance(each, Traced) else each


def _places(axis: Any, dimensions: int) -> tuple[int, ...]:
    axes = (axis,) if isinstance(axis, int) else axis
    return tuple(each % dimensions for each in axes)


def _kept(gradient: Array, of: Array, axis: Any, keepdims: bool) -> Array:
    """With the axes again that a reduction removed."""
    if keepdims:
        return gradient
    axes = range(of.ndim) if axis is None else _places(axis, of.ndim)
    return np.expand_dims(gradient, tuple(axes))


def _summed(backward: Backward, shape: tuple[int, ...]) -> Backward:
    """Over the axes along which an operand was repeated to fit the other one."""

    def to_operand(gradient: Array) -> Array:
        part: Array = backward(gradient)
        if part.ndim > len(shape):
            part = part.sum(axis=tuple(range(part.ndim - len(shape))))
        repeated = tuple(place for place, size in enumerate(shape) if size == 1 and part.shape[place] != 1)
        whole: Array = part.sum(axis=repeated, keepdims=True) if repeated else part
        return whole

    return to_operand


def _where(condition: Array, one: Any, other: Any) -> Traced:
    rules: list[tuple[Any, Backward]] = [
        (one, lambda gradient: np.where(condition, gradient, 0.0)),
        (other, lambda gradient: np.where(condition, 0.0, gradient)),
    ]
    made_of = [(each, _summed(rule, each.shape)) for each, rule in rules if isinstance(each, Traced)]
    return Traced(np.where(condition, plain(one), plain(other)), made_of)


def _clip(array: Traced, low: float, high: float) -> Traced:
    inside = (array.value > low) & (array.value < high)
    return Traced(np.clip(array.value, low, high), [(array, lambda gradient: gradient * inside)])


def _pad(array: Traced, margins: Any, constant_values: float = 0.0) -> Traced:
    inner = tuple(slice(before, before + size) for (before, _), size in zip(margins, array.shape, strict=True))
    padded = np.pad(array.value, margins, constant_values=constant_values)
    return Traced(padded, [(array, lambda gradient: gradient[inner])])


def _windows(array: Traced, window: tuple[int, ...], axis: tuple[int, ...]) -> Traced:
    def backward(gradient: Array) -> Array:
        whole = np.zeros_like(gradient, shape=array.shape, order="C")
        # Writing through a view would lose what overlaps, so each place within the window is added as a whole.
        for within in np.ndindex(*window):
            part = gradient[(..., *within)]
            places: list[slice] = [slice(None)] * array.ndim
            for place, start in zip(axis, within, strict=True):
                places[place] = slice(start, start + part.shape[place])
            whole[tuple(places)] += part
        return whole

    return Traced(np.lib.stride_tricks.sliding_window_view(array.value, window, axis), [(array, backward)])


def _einsum(subscripts: str, *operands: Any, optimize: bool = False) -> Traced:
    inward, outward = subscripts.split("->")
    names = inward.split(",")

    def rule_of(number: int) -> Backward:
        others = [each for place, each in enumerate(operands) if place != number]
        read = ",".join([outward, *(name for place, name in enumerate(names) if place != number)])
        return lambda gradient: np.einsum(f"{read}->{names[number]}", gradient, *map(plain, others), optimize=optimize)

    made_of = [(each, rule_of(place)) for place, each in enumerate(operands) if isinstance(each, Traced)]
    return Traced(np.einsum(subscripts, *map(plain, operands), optimize=optimize), made_of)


def _concatenate(arrays: Sequence[Any], axis: int = 0, dtype: Any = None) -> Traced:
    values = [plain(each) for each in arrays]
    ends = np.cumsum([value.shape[axis] for value in values])

    def rule_of(number: int) -> Backward:
        first = 0 if number == 0 else ends[number - 1]
        return lambda gradient: np.take(gradient, range(first, ends[number]), axis=axis)

    made_of = [(each, rule_of(place)) for place, each in enumerate(arrays) if isinstance(each, Traced)]
    return Traced(np.concatenate(values, axis=axis, dtype=dtype), made_of)


def _stack(arrays: Sequence[Any], axis: int = 0) -> Traced:
    made_of = [
        (each, lambda gradient, place=place: gradient[(slice(None),) * (axis % gradient.ndim) + (place,)])
        for place, each in enumerate(arrays)
        if isinstance(each, Traced)
    ]
    return Traced(np.stack([plain(each) for each in arrays], axis=axis), made_of)


def _broadcast_to(array: Traced, shape: Sequence[int]) -> Traced:
    back = _summed(lambda gradient: gradient, array.shape)
    return Traced(np.broadcast_to(array.value, shape), [(array, back)])


def _take(array: Traced, indices: Any, axis: int) -> Traced:
    return array[(slice(None),) * (axis % array.ndim) + (np.asarray(indices),)]


def _roll(array: Traced, shift: int, axis: int) -> Traced:
    return Traced(np.roll(array.value, shift, axis), [(array, lambda gradient: np.roll(gradient, -shift, axis))])


def _split(array: Traced, parts: int, axis: int = 0) -> list[Traced]:
    each = array.shape[axis] // parts
    place = axis % array.ndim
    return [array[(slice(None),) * place + (slice(number * each, (number + 1) * each),)] for number in range(parts)]


def _take_along_axis(array: Traced, indices: Array, axis: int) -> Traced:
    def backward(gradient: Array) -> Array:
        whole = np.zeros(array.shape, gradient.dtype)
        np.put_along_axis(whole, indices, gradient, axis)
        return whole

    return Traced(np.take_along_axis(array.value, indices, axis), [(array, backward)])


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "clip": _clip,
    "pad": _pad,
    "sliding_window_view": _windows,
    "einsum": _einsum,
    "concatenate": _concatenate,
    "stack": _stack,
    "roll": _roll,
    "broadcast_to": _broadcast_to,
    "take": _take,
    "reshape": lambda array, shape: array.reshape(shape),
    "transpose": lambda array, axes=(): array.transpose(axes),
    "split": _split,
    "take_along_axis": _take_along_axis,
    "mean": Traced.mean,
    "sum": Traced.sum,
    "shape": lambda array: array.shape,
}

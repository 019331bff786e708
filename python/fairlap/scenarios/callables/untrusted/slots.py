"""The calls of one sample in the contestant's process: arguments out of shared memory, answers into it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from fairlap.scenarios.callables.untrusted.layout import BFLOAT16, Layout, Leaf, built, leaves_of, nested

Array = np.ndarray[Any, Any]


class Slots:
    """Every slot has the arguments of one call, and room for its answer."""

    def __init__(self, arguments: Any, answers: Any, inputs: Array, answered: Array, count: int) -> None:
        given, self._answers = (msgspec.convert(each, Layout) for each in (arguments, answers))
        self._as_tensors = [leaf.library == "torch" for leaf in self._answers.leaves]
        self._nesting = shape_of_nesting(self._answers.nesting)
        self._is_single = self._answers.nesting == ["leaf", 0]
        self._arguments = [_arguments_of(given, given.views(inputs, slot)) for slot in range(count)]
        self._kept = [_made(self._answers, self._answers.views(answered, slot)) for slot in range(count)]

    def run(self, call: Callable[..., Any], first: int, count: int) -> str:
        """Call once with each slot's arguments; return how the form of an answer is wrong, or an empty text."""
        keep = self._keep_one if self._is_single else self._keep
        for slot in range(first, first + count):
            arguments, keywords = self._arguments[slot]()
            if why := keep(call(*arguments, **keywords), self._kept[slot]):
                return why
        return ""

    def empty_call(self) -> Callable[..., Any]:
        """Return an answer of the right form and do nothing, which is what a sample costs by itself."""
        made = [_zeros(leaf) for leaf in self._answers.leaves]
        answer = built(self._answers.nesting, lambda place: made[place])
        return lambda *_, **__: answer

    def _keep_one(self, answer: Any, kept: list[Any]) -> str:
        return _copied(answer, kept[0], self._as_tensors[0])

    def _keep(self, answer: Any, kept: list[Any]) -> str:
        if shape_of_nesting(nested(answer, lambda _: ["leaf", 0])) != self._nesting:
            return f"it returned a {type(answer).__name__} of another form than the reference"
        for value, into, as_tensor in zip(leaves_of(answer), kept, self._as_tensors, strict=True):
            if why := _copied(value, into, as_tensor):
                return why
        return ""


def _copied(value: Any, into: Any, as_tensor: bool) -> str:
    """Copy an answer, unless it is no plain array, tensor or number of the right shape and kind."""
    kind = type(value)
    if as_tensor:
        import torch

        if kind is not torch.Tensor:
            return f"it returned a {kind.__name__}, not a tensor"
        if value.shape != into.shape or value.is_floating_point() != into.is_floating_point():
            return f"it returned {value.dtype} of shape {list(value.shape)}, not {into.dtype} of {list(into.shape)}"
        into.copy_(value.detach())
        return ""
    if kind is not np.ndarray and not isinstance(value, np.generic):
        if kind.__module__ == "torch" and kind.__name__ == "Tensor":
            value = value.detach().numpy()
        elif kind not in (bool, int, float, complex, memoryview):
            return f"it returned a {kind.__name__}, not an array, a tensor or a number"
        value = np.asarray(value)
    if value.shape != into.shape or value.dtype.kind != into.dtype.kind:
        if value.shape == into.shape and {value.dtype.kind, into.dtype.kind} == {"i", "u"}:
            np.copyto(into, value, casting="unsafe")
            return ""
        return f"it returned {value.dtype} of shape {list(value.shape)}, not {into.dtype} of {list(into.shape)}"
    into[...] = value
    return ""


def _arguments_of(layout: Layout, views: list[Array]) -> Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arrays are made once; what holds numbers is built for each call."""
    leaves = layout.leaves
    made = _made(layout, views)

    def once() -> tuple[tuple[Any, ...], dict[str, Any]]:
        tree = built(layout.nesting, lambda place: made[place])
        if isinstance(tree, Mapping):
            return (), dict(tree)
        return (tree if isinstance(tree, tuple) else (tree,)), {}

    def with_numbers() -> tuple[tuple[Any, ...], dict[str, Any]]:
        for place, leaf in enumerate(leaves):
            if leaf.library == "python":
                made[place] = views[place].item()
            elif not leaf.shape and leaf.library == "numpy":
                made[place] = views[place][()]
        return once()

    if any(leaf.library == "python" or (not leaf.shape and leaf.library == "numpy") for leaf in leaves):
        return with_numbers
    same = once()
    return lambda: same


def _made(layout: Layout, views: list[Array]) -> list[Any]:
    """Return the arrays and tensors that are these views."""
    pairs = zip(views, layout.leaves, strict=True)
    return [_as_tensor(view, leaf) if leaf.library == "torch" else view for view, leaf in pairs]


def _as_tensor(view: Array, leaf: Leaf) -> Any:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # inputs cannot be written, of which torch has no notion
        tensor = torch.from_numpy(view)
    return tensor.view(torch.bfloat16) if leaf.dtype == BFLOAT16 else tensor


def _zeros(leaf: Leaf) -> Any:
    """Return what the reference returns, a number as a number: some kinds take longer to copy than others."""
    zeros = np.zeros(leaf.shape, leaf.stored_as)
    if leaf.library == "python":
        return zeros.item()
    if leaf.library == "torch":
        return _as_tensor(zeros, leaf)
    return zeros if leaf.shape else zeros[()]


def shape_of_nesting(nesting: Any) -> Any:
    kind, *rest = nesting
    if kind == "dict":
        return {name: shape_of_nesting(each) for name, each in rest[0].items()}
    return "leaf" if kind in ("leaf", "plain") else [shape_of_nesting(each) for each in rest]

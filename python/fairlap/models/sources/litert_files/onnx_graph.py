"""The ONNX graph that a LiteRT graph is written into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from fairlap.models.sources.litert_files.steps import ACCUMULATED, IN_STEPS, Array, Steps


class Untranslated(Exception):
    """There is no ONNX operator for it, or not for what it is given. The message is the reason."""


class OnnxGraph:
    """What is written so far. Weights have the file's names, and other values numbers.

    A tensor that LiteRT holds in steps is in whole numbers here too. Operators compute on the real numbers of these,
    which are made where they are needed, and their results are rounded to steps again.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """``taken`` are names of inputs and outputs."""
        self.nodes: list[Any] = []
        self.initializers: dict[str, Array] = {}
        self.in_steps: set[str] = set()  # names of whole numbers
        self._taken = set(taken)
        self._numbers = count(1)
        self._real: dict[str, str] = {}

    def inside(self) -> OnnxGraph:
        """Begin the graph of a loop or a branch, which sees what is outside."""
        found = OnnxGraph()
        found.initializers, found.in_steps = self.initializers, self.in_steps
        found._taken, found._numbers = self._taken, self._numbers
        return found

    def fresh(self) -> str:
        names = (f"value {number}" for number in self._numbers)
        name = next(each for each in names if each not in self._taken and each not in self.initializers)
        self._taken.add(name)
        return name

    def node(self, kind: str, inputs: Sequence[str], outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node that gives one value, unless ``outputs`` names others, and return the name of the first."""
        from onnx import helper

        names = list(outputs) or [self.fresh()]
        name = f"{kind} {len(self.nodes) + 1} for {names[0]}"
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=name, **attributes))
        return names[0]

    def hold(self, array: Array, name: str) -> str:
        """Hold a constant once, under its name or, where another one has that, the name with a number."""
        number, own = 1, name
        while own in self._taken or (own in self.initializers and not _are_same(self.initializers[own], array)):
            number, own = number + 1, f"{name}#{number}"
        self.initializers[own] = np.ascontiguousarray(array).reshape(array.shape)
        return own

    def holds(self, dtype: str) -> bool:
        return any(array.dtype.name == dtype for array in self.initializers.values())

    def real(self, value: str, steps: Steps) -> str:
        """Make real numbers of whole ones."""
        if value not in self._real:
            self._real[value] = self.node("DequantizeLinear", [value, *self._held(steps)], axis=steps.axis)
        return self._real[value]

    def rounded(self, value: str, steps: Steps) -> str:
        """Make whole numbers of real ones."""
        if steps.dtype not in IN_STEPS:
            raise Untranslated(f"a result in steps of {steps.dtype}")
        found = self.node("QuantizeLinear", [value, *self._held(steps)], axis=steps.axis)
        self.in_steps.add(found)
        return found

    def _held(self, steps: Steps) -> list[str]:
        scales, zeros = steps.scales, steps.zeros.astype(steps.dtype if steps.dtype in IN_STEPS else "int32")
        if steps.is_one:
            scales, zeros = scales[0].reshape(()), zeros[0].reshape(())
        if steps.dtype in ACCUMULATED:
            if steps.zeros.any():
                raise Untranslated(f"steps of {steps.dtype} with a zero point")
            return [self.hold(scales, "scale")]
        return [self.hold(scales, "scale"), self.hold(zeros, "zero point")]


def _are_same(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)

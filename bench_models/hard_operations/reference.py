"""The operations in NumPy, in float64: sums without rounding, and small systems solved in fractions.

A contestant may be wrong here by design, so its answer is measured and never refused: see ``output_errors``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.elementary import softmax
from fairlap.bench_models.hard_operations import EPSILON
from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import OutputError
from fairlap.models.checks.kept_digits import any_error
from fairlap.models.made_arrays import MOST_OF_HILBERT
from fairlap.models.operations.hard import Hard

Array = npt.NDArray[Any]


def _sum(_weights: Arrays, inputs: Arrays) -> Array:
    return np.array([math.fsum(row) for row in inputs["numbers"]])


def _dot(_weights: Arrays, inputs: Arrays) -> Array:
    """Products of float32 are exact in float64."""
    return np.array([math.fsum(row) for row in inputs["a"] * inputs["b"]])


def _matmul(weights: Arrays, inputs: Arrays) -> Array:
    product: Array = weights["a"] @ inputs["b"].T
    return product


def _solve(weights: Arrays, inputs: Arrays) -> Array:
    matrix, right = weights["a"], inputs["b"]
    return solved_in_fractions(matrix, right) if len(matrix) <= MOST_OF_HILBERT else np.linalg.solve(matrix, right)


def _logsumexp(_weights: Arrays, inputs: Arrays) -> Array:
    numbers = inputs["numbers"]
    largest = numbers.max(-1)
    found: Array = largest + np.log(np.exp(numbers - largest[:, None]).sum(-1))
    return found


def _layernorm(_weights: Arrays, inputs: Arrays) -> Array:
    numbers = inputs["numbers"]
    centred = numbers - numbers.mean(-1, keepdims=True)
    normed: Array = centred / np.sqrt(np.mean(centred**2, -1, keepdims=True) + EPSILON)
    return normed


def _attention(_weights: Arrays, inputs: Arrays) -> Array:
    query, key, value = inputs["query"], inputs["key"], inputs["value"]
    attended: Array = softmax(query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])) @ value
    return attended


_FUNCTIONS: Mapping[str, Callable[[Arrays, Arrays], Array]] = {
    "sum": _sum,
    "dot": _dot,
    "matmul": _matmul,
    "solve": _solve,
    "softmax": lambda _weights, inputs: softmax(inputs["numbers"]),
    "logsumexp": _logsumexp,
    "layernorm": _layernorm,
    "variance": lambda _weights, inputs: inputs["numbers"].var(-1),
    "attention": _attention,
    "subnormal": lambda _weights, inputs: inputs["numbers"] * 0.5,
    "special-max": lambda _weights, inputs: inputs["numbers"].max(-1),
    "special-softmax": lambda _weights, inputs: softmax(inputs["numbers"]),
    "special-sort": lambda _weights, inputs: np.sort(inputs["numbers"], -1),
}


class Implementation:
    def __init__(self, operation: Hard) -> None:
        self._operation = operation

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        with np.errstate(invalid="ignore", over="ignore"):
            found = _FUNCTIONS[self._operation.function](weights, inputs)
        return {self._operation.output.name: found.astype(next(iter(inputs.values())).dtype, copy=False)}

    def output_errors(
        self, _weights: Arrays, _inputs: Arrays, got: Arrays, expected: Arrays, _roundoff: float
    ) -> list[OutputError]:
        """Measure how far an answer is off, however far."""
        return [any_error(name, got[name], expected[name], self._operation.by_element) for name in expected]


def solved_in_fractions(matrix: Array, right: Array) -> Array:
    """Solve by Gaussian elimination without rounding."""
    rows = [[Fraction(float(each)) for each in (*line, *sides)] for line, sides in zip(matrix, right, strict=True)]
    for column in range(len(rows)):
        pivot = max(range(column, len(rows)), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        leading = rows[column] = [each / rows[column][column] for each in rows[column]]
        for row, line in enumerate(rows):
            if row != column and line[column]:
                rows[row] = [each - line[column] * above for each, above in zip(line, leading, strict=True)]
    return np.array([[float(each) for each in row[len(rows) :]] for row in rows])

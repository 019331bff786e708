"""The operations in NumPy and SciPy, in float64, and how far answers are from being right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.science_operations.residuals import Answered, measured, sparse_matrix, summed_by_segment
from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import OutputError
from fairlap.models.operations.linear_algebra import Cholesky, Eigh, LinearSolve, Svd
from fairlap.models.operations.science import Fourier, Science, SegmentSum, Sort, SparseProduct

Array = npt.NDArray[Any]


class Implementation:
    def __init__(self, operation: Science) -> None:
        self._operation = operation

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        """Compute what is unique: of factors the singular values and eigenvalues, of random numbers nothing."""
        operation = self._operation
        match operation:
            case LinearSolve():
                return {"x": np.linalg.solve(inputs["a"], inputs["b"])}
            case Svd():
                return {"s": np.linalg.svd(inputs["a"], compute_uv=False)}
            case Eigh():
                return {"values": np.linalg.eigvalsh(inputs["a"])}
            case Cholesky():
                return {"factor": np.linalg.cholesky(inputs["a"])}
            case Fourier():
                found = np.fft.rfftn(inputs["signal"], axes=tuple(range(1, 1 + len(operation.shape))))
                return {"real": found.real, "imaginary": found.imag}
            case SparseProduct():
                return {"product": sparse_matrix(operation, weights["values"]) @ inputs["x"]}
            case Sort():
                return {"sorted": np.sort(inputs["numbers"], -1)}
            case SegmentSum():
                return {"sums": summed_by_segment(operation, inputs["data"], inputs["segments"])}
            case _:
                return {}

    def output_errors(
        self, weights: Arrays, inputs: Arrays, got: Arrays, expected: Arrays, roundoff: float
    ) -> list[OutputError]:
        for tensor in self._operation.outputs:
            array, shape = got[tensor.name], tensor.sized(1)
            if array.shape != shape:
                return [_wrong(tensor.name, f"its shape is {list(array.shape)}, not {list(shape)}")]
            if count := int(np.count_nonzero(~np.isfinite(array))):
                return [_wrong(tensor.name, f"{count:,} of {array.size:,} elements are not finite")]
        of_weights, given, answer, right = map(_in_float64, (weights, inputs, got, expected))
        answered = Answered(self._operation, of_weights, given, answer, right, roundoff)
        return [_error(*found) for found in measured(answered)]


def _in_float64(arrays: Arrays) -> Arrays:
    return {name: array.astype(np.float64) for name, array in arrays.items()}


def _error(what: str, off: float, allowed: float) -> OutputError:
    why = "" if off <= allowed else f"it is off by {off:.2g}, and may be by {allowed:.2g}"
    return OutputError(what, math.nan, off, off, why)


def _wrong(name: str, why: str) -> OutputError:
    return OutputError(name, math.nan, math.inf, math.inf, why)

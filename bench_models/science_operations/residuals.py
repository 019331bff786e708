"""How far answers are from what they have to fulfil, and how far they may be.

Factors are free up to signs and order. A residual is allowed 30 roundings, as in LAPACK's own tests (LAPACK Working
Note 41), times the root of the terms of the longest sum, since roundings go either way (Higham and Mary, SIAM Journal
on Scientific Computing 41, 2019). LAPACK allows 30 times their number, and at 512 rows that is what 16 bits bring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.models.arrays import Arrays
from fairlap.models.operations.linear_algebra import Cholesky, Eigh, LinearSolve, Qr, Svd
from fairlap.models.operations.science import (
    Fft,
    Fft2,
    Fft3,
    Fourier,
    RandomNormal,
    RandomUniform,
    Science,
    SegmentSum,
    Sort,
    SparseProduct,
)

# Whether numbers may come from a distribution: by its bounds, its moments, its shape and their independence. Bits are
# free, so no two libraries draw the same numbers. Each figure is compared with what chance brings: honest numbers
# exceed each bound about once in a thousand million draws.
_DEVIATIONS = 6.1  # two-sided, of a normal distribution: once in 1e9
_KOLMOGOROV = 3.27  # of the largest distance of cumulative shares, times the root of the count: once in 1e9
_FOURTH_OF_NORMAL, _FOURTH_OF_UNIFORM = 3.0, 1.8  # moments, of numbers scaled to a variance of one


def distances(numbers: npt.NDArray[Any], *, uniform: bool) -> Iterator[tuple[str, float, float]]:
    """Give what was measured, how far it is off, and how far it may be. Numbers are uniform from 0 to 1, or normal."""
    from scipy.special import ndtr  # type: ignore[import-untyped,unused-ignore]

    count = len(numbers)
    mean, variance, fourth = (0.5, 1 / 12, _FOURTH_OF_UNIFORM) if uniform else (0.0, 1.0, _FOURTH_OF_NORMAL)
    scaled = (numbers - mean) / math.sqrt(variance)
    by_chance = _DEVIATIONS / math.sqrt(count)
    if uniform:
        yield "share outside of 0 to 1", float(np.mean((numbers < 0) | (numbers > 1))), 0.0
    yield "mean", abs(float(scaled.mean())), by_chance
    yield "variance", abs(float(np.mean(scaled**2)) - 1), by_chance * math.sqrt(fourth - 1)
    ordered = np.sort(numbers)
    shares = ordered if uniform else ndtr(ordered)
    steps = np.arange(count + 1) / count
    largest = max(float((steps[1:] - shares).max()), float((shares - steps[:-1]).max()))
    yield "Kolmogorov-Smirnov distance", largest, _KOLMOGOROV / math.sqrt(count)
    for lag in (1, 2):
        yield f"correlation at lag {lag}", abs(float(np.mean(scaled[lag:] * scaled[:-lag]))), by_chance
    different = len(np.unique(numbers.astype(np.float32)))
    # A float32 generator of 23 bits has 8 million different numbers, so that some of a million are alike by chance.
    expected = 2.0**23 * -math.expm1(-count / 2.0**23)
    yield "numbers too few that differ", max(1 - different / expected, 0.0), 0.05


Array = npt.NDArray[Any]
Measured = Iterator[tuple[str, float, float]]
"""What was measured, how far it is off, and how far it may be."""

_ROUNDINGS = 30


@dataclass(frozen=True)
class Answered:
    """All in float64. ``expected`` is what is unique of the right answer."""

    operation: Any
    weights: Arrays
    inputs: Arrays
    got: Arrays
    expected: Arrays
    roundoff: float

    def allowed(self, terms: float) -> float:
        return _ROUNDINGS * math.sqrt(terms) * self.roundoff


def measured(answered: Answered) -> Measured:
    return _MEASURES[type(answered.operation)](answered)


def _solution(answered: Answered) -> Measured:
    """Measure the backward error of the worst right side: how far A and b would have to move for x to be exact.

    By norms of columns (Rigal and Gaches, Journal of the ACM 14, 1967).
    """
    a, b, x = answered.inputs["a"], answered.inputs["b"], answered.got["x"]
    residual, of_a, of_x, of_b = (np.abs(each).sum(0) for each in (a @ x - b, a, x, b))
    yield "A x - b", _largest(residual / (of_a.max() * of_x + of_b)), answered.allowed(len(a))


def _qr(answered: Answered) -> Measured:
    a, q, r = answered.inputs["a"], answered.got["q"], answered.got["r"]
    allowed = answered.allowed(len(a))
    yield "A - Q R", _norm(a - q @ r) / _norm(a), allowed
    yield "orthogonality of Q", _off_orthogonal(q), allowed
    yield "below the diagonal of R", _norm(np.tril(r, -1)) / _norm(r), 0.0


def _svd(answered: Answered) -> Measured:
    a, got, expected = answered.inputs["a"], answered.got, answered.expected["s"]
    allowed = answered.allowed(len(a))
    yield "A - U S V'", _norm(a - (got["u"] * got["s"]) @ got["vt"]) / _norm(a), allowed
    yield "orthogonality of U", _off_orthogonal(got["u"]), allowed
    yield "orthogonality of V", _off_orthogonal(got["vt"].T), allowed
    yield "singular values", _largest(got["s"] - expected) / _largest(expected), allowed


def _eigh(answered: Answered) -> Measured:
    a, values, vectors = answered.inputs["a"], answered.got["values"], answered.got["vectors"]
    expected, allowed = answered.expected["values"], answered.allowed(len(a))
    yield "A V - V D", _norm(a @ vectors - vectors * values) / _norm(a), allowed
    yield "orthogonality of V", _off_orthogonal(vectors), allowed
    yield "eigenvalues", _largest(values - expected) / _largest(expected), allowed


def _cholesky(answered: Answered) -> Measured:
    a, factor = answered.inputs["a"], answered.got["factor"]
    yield "A - L L'", _norm(a - factor @ factor.T) / _norm(a), answered.allowed(len(a))
    yield "above the diagonal of L", _norm(np.triu(factor, 1)), 0.0
    yield "signs of the diagonal of L", float(np.count_nonzero(np.diag(factor) <= 0)), 0.0


def _fourier(answered: Answered) -> Measured:
    """Bound it by the steps of a fast transform, as its error grows (Higham, theorem 24.2)."""
    operation: Fourier = answered.operation
    names = [tensor.name for tensor in operation.outputs]
    off = math.hypot(*(_norm(answered.got[name] - answered.expected[name]) for name in names))
    size = math.hypot(*(_norm(answered.expected[name]) for name in names))
    yield "transform", off / size, answered.allowed(max(math.log2(math.prod(operation.shape)), 1.0))


def _sparse_product(answered: Answered) -> Measured:
    operation: SparseProduct = answered.operation
    sizes = sparse_matrix(operation, np.abs(answered.weights["values"])) @ np.abs(answered.inputs["x"])
    off = _norm(answered.got["product"] - answered.expected["product"])
    yield "product", off / _norm(sizes), answered.allowed(operation.nonzeros)


def _random(answered: Answered) -> Measured:
    return distances(answered.got["numbers"], uniform=isinstance(answered.operation, RandomUniform))


def _sorted(answered: Answered) -> Measured:
    """Numbers are only moved, so that nothing is rounded."""
    yield "order", float(np.count_nonzero(answered.got["sorted"] != answered.expected["sorted"])), 0.0


def _segment_sum(answered: Answered) -> Measured:
    operation: SegmentSum = answered.operation
    segments = answered.inputs["segments"].astype(np.int64)
    sizes = summed_by_segment(operation, np.abs(answered.inputs["data"]), segments)
    off = _norm(answered.got["sums"] - answered.expected["sums"])
    yield "sums", off / _norm(sizes), answered.allowed(int(np.bincount(segments).max()))


_MEASURES: Mapping[type[Science], Callable[[Answered], Measured]] = {
    LinearSolve: _solution,
    Qr: _qr,
    Svd: _svd,
    Eigh: _eigh,
    Cholesky: _cholesky,
    **dict.fromkeys((Fft, Fft2, Fft3), _fourier),
    SparseProduct: _sparse_product,
    **dict.fromkeys((RandomUniform, RandomNormal), _random),
    Sort: _sorted,
    SegmentSum: _segment_sum,
}


def summed_by_segment(operation: SegmentSum, data: Array, segments: Array) -> Array:
    sums = np.zeros((operation.segments, operation.width))
    np.add.at(sums, segments.astype(np.int64), data)
    return sums


def sparse_matrix(operation: SparseProduct, values: Array) -> Any:
    from scipy.sparse import csr_array  # type: ignore[import-untyped,unused-ignore]

    rows = np.arange(0, operation.n * operation.nonzeros + 1, operation.nonzeros)
    return csr_array((values.astype(np.float64), operation.columns.reshape(-1), rows), (operation.n, operation.n))


def _off_orthogonal(columns: Array) -> float:
    """Measure how far columns are from unit length and right angles, for each of them."""
    width = columns.shape[1]
    return _norm(columns.T @ columns - np.eye(width)) / math.sqrt(width)


def _norm(array: Array) -> float:
    return float(np.linalg.norm(array.reshape(-1)))


def _largest(array: Array) -> float:
    return float(np.abs(array).max())

"""Linear algebra, transforms, sparse products, random numbers, sorting and sums by segment.

Their answers are checked by residuals where signs and orders of factors are free, and by their distribution where bits
are. Operations are counted as published; what has no lower bound of them is under no roof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fairlap.models.operations.operation import FLOAT32_BYTES, Operation
from fairlap.models.spec import Constant, Fill, Integers, Made, Normal, Tensor, Weight
from fairlap.request.work import Precision

_MOST_SEED = 2**31 - 1
_STRUCTURE_SEED = 7


def _output(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, Constant(0.0))


@dataclass(frozen=True)
class Science(Operation):
    """``function`` is what frameworks have an implementation of."""

    implemented_in: ClassVar[str] = "fairlap.bench_models.science_operations"
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32",)
    function: ClassVar[str]

    @property
    def macs(self) -> int:
        return 0

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    @property
    def weights(self) -> tuple[Weight, ...]:
        return ()


@dataclass(frozen=True)
class LinearSolve(Science):
    """A x = b for several b, by LU factorization with pivots: n^3 / 3 multiply-accumulates, and n^2 for each b."""

    n: int
    right_sides: int

    kind: ClassVar[str] = "solve"
    task: ClassVar[str] = "linear equations"
    grammar: ClassVar[str] = r"solve-n(\d+)-r(\d+)"
    function: ClassVar[str] = "solve"

    @property
    def name(self) -> str:
        return f"solve-n{self.n}-r{self.right_sides}"

    @property
    def macs(self) -> int:
        return self.n**3 // 3 + self.right_sides * self.n**2

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("a", (self.n, self.n)), Tensor("b", (self.n, self.right_sides)))

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (_output("x", self.n, self.right_sides),)


@dataclass(frozen=True)
class OfMatrix(Science):
    """Of one matrix, at least as tall as wide."""

    m: int
    n: int

    task: ClassVar[str] = "matrix factorization"

    @property
    def name(self) -> str:
        return f"{self.kind}-m{self.m}-n{self.n}"

    @property
    def is_possible(self) -> bool:
        return self.m >= self.n >= 1

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("a", (self.m, self.n)),)


@dataclass(frozen=True)
class Qr(OfMatrix):
    """By Householder reflections, with Q formed: 4 n^2 (m - n / 3) operations (Golub and Van Loan, section 5.2)."""

    kind: ClassVar[str] = "qr"
    grammar: ClassVar[str] = r"qr-m(\d+)-n(\d+)"
    function: ClassVar[str] = "qr"

    @property
    def macs(self) -> int:
        return 2 * self.n**2 * (3 * self.m - self.n) // 3

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (_output("q", self.m, self.n), _output("r", self.n, self.n))


@dataclass(frozen=True)
class Svd(OfMatrix):
    """Singular values and vectors: 6 m n^2 + 20 n^3 operations (R-SVD; Golub and Van Loan, section 8.6)."""

    kind: ClassVar[str] = "svd"
    grammar: ClassVar[str] = r"svd-m(\d+)-n(\d+)"
    function: ClassVar[str] = "svd"
    under_roof: ClassVar[bool] = False  # other algorithms need fewer

    @property
    def operations(self) -> int:
        return 6 * self.m * self.n**2 + 20 * self.n**3

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (_output("u", self.m, self.n), _output("s", self.n), _output("vt", self.n, self.n))


@dataclass(frozen=True)
class OfSquare(Science):
    n: int

    task: ClassVar[str] = "matrix factorization"
    matrix: ClassVar[Fill]

    @property
    def name(self) -> str:
        return f"{self.kind}-n{self.n}"

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("a", (self.n, self.n), self.matrix),)


@dataclass(frozen=True)
class Eigh(OfSquare):
    """Eigenvalues and vectors of a symmetric matrix: 9 n^3 operations (Golub and Van Loan, section 8.3)."""

    kind: ClassVar[str] = "eigh"
    grammar: ClassVar[str] = r"eigh-n(\d+)"
    function: ClassVar[str] = "eigh"
    under_roof: ClassVar[bool] = False  # other algorithms need fewer
    matrix: ClassVar[Fill] = Made("symmetric")

    @property
    def operations(self) -> int:
        return 9 * self.n**3

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (_output("values", self.n), _output("vectors", self.n, self.n))


@dataclass(frozen=True)
class Cholesky(OfSquare):
    """Of a positive definite matrix: n^3 / 6 multiply-accumulates."""

    kind: ClassVar[str] = "cholesky"
    grammar: ClassVar[str] = r"cholesky-n(\d+)"
    function: ClassVar[str] = "cholesky"
    matrix: ClassVar[Fill] = Made("definite", 0.5)

    @property
    def macs(self) -> int:
        return self.n**3 // 6

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (_output("factor", self.n, self.n),)


@dataclass(frozen=True)
class Fourier(Science):
    """Transforms of real numbers along the last axes: 2.5 N log2 N operations of N points, as FFTW counts them."""

    task: ClassVar[str] = "Fourier transform"
    function: ClassVar[str] = "fft"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the signals, after the axis of a batch."""
        raise NotImplementedError

    @property
    def signals(self) -> int:
        raise NotImplementedError

    @property
    def operations(self) -> int:
        points = math.prod(self.shape)
        return round(2.5 * self.signals * points * math.log2(points))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("signal", (self.signals, *self.shape)),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        shape = (self.signals, *self.shape[:-1], self.shape[-1] // 2 + 1)
        return (_output("real", *shape), _output("imaginary", *shape))


@dataclass(frozen=True)
class Fft(Fourier):
    n: int
    batch: int

    kind: ClassVar[str] = "fft"
    grammar: ClassVar[str] = r"fft-n(\d+)-b(\d+)"

    @property
    def name(self) -> str:
        return f"fft-n{self.n}-b{self.batch}"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n,)

    @property
    def signals(self) -> int:
        return self.batch


@dataclass(frozen=True)
class Fft2(Fourier):
    height: int
    width: int
    batch: int

    kind: ClassVar[str] = "fft2"
    grammar: ClassVar[str] = r"fft2-h(\d+)-w(\d+)-b(\d+)"

    @property
    def name(self) -> str:
        return f"fft2-h{self.height}-w{self.width}-b{self.batch}"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.height, self.width)

    @property
    def signals(self) -> int:
        return self.batch


@dataclass(frozen=True)
class Fft3(Fourier):
    depth: int
    height: int
    width: int

    kind: ClassVar[str] = "fft3"
    grammar: ClassVar[str] = r"fft3-d(\d+)-h(\d+)-w(\d+)"

    @property
    def name(self) -> str:
        return f"fft3-d{self.depth}-h{self.height}-w{self.width}"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.depth, self.height, self.width)

    @property
    def signals(self) -> int:
        return 1


@dataclass(frozen=True)
class SparseProduct(Science):
    """A sparse matrix of ``n`` rows with ``nonzeros`` each, times a vector. Where they are is part of the operation."""

    n: int
    nonzeros: int

    kind: ClassVar[str] = "spmv"
    task: ClassVar[str] = "sparse product"
    grammar: ClassVar[str] = r"spmv-n(\d+)-z(\d+)"
    function: ClassVar[str] = "spmv"

    @property
    def name(self) -> str:
        return f"spmv-n{self.n}-z{self.nonzeros}"

    @property
    def is_possible(self) -> bool:
        return 1 <= self.nonzeros <= self.n

    @property
    def macs(self) -> int:
        return self.n * self.nonzeros

    @property
    def bytes(self) -> int:
        """With a column of four bytes for each value, and the places of rows."""
        return super().bytes + FLOAT32_BYTES * (self.n * self.nonzeros + self.n + 1)

    @property
    def columns(self) -> npt.NDArray[np.int32]:
        """Of each row, ascending and different: one drawn in each of equal stretches of the row."""
        rng = np.random.default_rng(_STRUCTURE_SEED)
        edges = np.linspace(0, self.n, self.nonzeros + 1).astype(np.int64)
        return rng.integers(edges[:-1], edges[1:], (self.n, self.nonzeros)).astype(np.int32)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("x", (self.n,)),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (_output("product", self.n),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        return (Weight("values", (self.n * self.nonzeros,), Normal(self.nonzeros**-0.5)),)


@dataclass(frozen=True)
class Random(Science):
    """Numbers of the library's own generator, whose bits are free."""

    n: int

    task: ClassVar[str] = "random numbers"

    @property
    def name(self) -> str:
        return f"{self.kind}-n{self.n}"

    @property
    def is_possible(self) -> bool:
        """Fewer numbers do not show their distribution."""
        return self.n >= 1000

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("seed", (2,), Integers(0, _MOST_SEED), "int32"),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (_output("numbers", self.n),)


@dataclass(frozen=True)
class RandomUniform(Random):
    """From 0 to 1."""

    kind: ClassVar[str] = "random-uniform"
    grammar: ClassVar[str] = r"random-uniform-n(\d+)"
    function: ClassVar[str] = "uniform"


@dataclass(frozen=True)
class RandomNormal(Random):
    kind: ClassVar[str] = "random-normal"
    grammar: ClassVar[str] = r"random-normal-n(\d+)"
    function: ClassVar[str] = "normal"


@dataclass(frozen=True)
class Sort(Science):
    """Each row, ascending."""

    rows: int
    numbers: int

    kind: ClassVar[str] = "sort"
    task: ClassVar[str] = "sorting"
    grammar: ClassVar[str] = r"sort-r(\d+)-n(\d+)"
    function: ClassVar[str] = "sort"

    @property
    def name(self) -> str:
        return f"sort-r{self.rows}-n{self.numbers}"

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("numbers", (self.rows, self.numbers)),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (_output("sorted", self.rows, self.numbers),)


@dataclass(frozen=True)
class SegmentSum(Science):
    """Rows of data added up by the number of their segment, in no order: an addition for each element."""

    rows: int
    width: int
    segments: int

    kind: ClassVar[str] = "segment-sum"
    task: ClassVar[str] = "sum by segment"
    grammar: ClassVar[str] = r"segment-sum-n(\d+)-d(\d+)-s(\d+)"
    function: ClassVar[str] = "segment-sum"

    @property
    def name(self) -> str:
        return f"segment-sum-n{self.rows}-d{self.width}-s{self.segments}"

    @property
    def operations(self) -> int:
        return self.rows * self.width

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        of_rows = Tensor("segments", (self.rows,), Integers(0, self.segments), "int32")
        return (Tensor("data", (self.rows, self.width)), of_rows)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (_output("sums", self.segments, self.width),)


SCIENCE_KINDS: tuple[type[Operation], ...] = (
    *(LinearSolve, Qr, Svd, Eigh, Cholesky, Fft, Fft2, Fft3),
    *(SparseProduct, RandomUniform, RandomNormal, Sort, SegmentSum),
)

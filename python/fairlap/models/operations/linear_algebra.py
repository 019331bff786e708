"""Linear equations and factorizations of matrices.

Their answers are checked by residuals where signs and orders of factors are free. Operations are counted as published;
what has no lower bound of them is under no roof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairlap.models.operations.operation import Operation, result
from fairlap.models.operations.science import Science
from fairlap.models.spec import Fill, Made, Tensor


@dataclass(frozen=True)
class LinearSolve(Science):
    """A x = b for several b, by LU factorization with pivots: n^3 / 3 multiply-accumulates, and n^2 for each b."""

    n: int
    right_sides: int

    kind: ClassVar[str] = "solve"
    task: ClassVar[str] = "linear equations"
    sizes: ClassVar[str] = "n{n}-r{right_sides}"

    @property
    def macs(self) -> int:
        return self.n**3 // 3 + self.right_sides * self.n**2

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("a", (self.n, self.n)), Tensor("b", (self.n, self.right_sides)))

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("x", self.n, self.right_sides),)


@dataclass(frozen=True)
class OfMatrix(Science):
    """Of one matrix, at least as tall as wide."""

    m: int
    n: int

    task: ClassVar[str] = "matrix factorization"
    sizes: ClassVar[str] = "m{m}-n{n}"

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

    @property
    def macs(self) -> int:
        return 2 * self.n**2 * (3 * self.m - self.n) // 3

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("q", self.m, self.n), result("r", self.n, self.n))


@dataclass(frozen=True)
class Svd(OfMatrix):
    """Singular values and vectors: 6 m n^2 + 20 n^3 operations (R-SVD; Golub and Van Loan, section 8.6)."""

    kind: ClassVar[str] = "svd"
    under_roof: ClassVar[bool] = False  # other algorithms need fewer

    @property
    def operations(self) -> int:
        return 6 * self.m * self.n**2 + 20 * self.n**3

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("u", self.m, self.n), result("s", self.n), result("vt", self.n, self.n))


@dataclass(frozen=True)
class OfSquare(Science):
    n: int

    task: ClassVar[str] = "matrix factorization"
    sizes: ClassVar[str] = "n{n}"
    matrix: ClassVar[Fill]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("a", (self.n, self.n), self.matrix),)


@dataclass(frozen=True)
class Eigh(OfSquare):
    """Eigenvalues and vectors of a symmetric matrix: 9 n^3 operations (Golub and Van Loan, section 8.3)."""

    kind: ClassVar[str] = "eigh"
    under_roof: ClassVar[bool] = False  # other algorithms need fewer
    matrix: ClassVar[Fill] = Made("symmetric")

    @property
    def operations(self) -> int:
        return 9 * self.n**3

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("values", self.n), result("vectors", self.n, self.n))


@dataclass(frozen=True)
class Cholesky(OfSquare):
    """Of a positive definite matrix: n^3 / 6 multiply-accumulates."""

    kind: ClassVar[str] = "cholesky"
    matrix: ClassVar[Fill] = Made("definite", 0.5)

    @property
    def macs(self) -> int:
        return self.n**3 // 6

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("factor", self.n, self.n),)


LINEAR_ALGEBRA_KINDS: tuple[type[Operation], ...] = (LinearSolve, Qr, Svd, Eigh, Cholesky)

"""Operations on inputs with which digits are lost: cancellation, large offsets, bad condition, special values.

A contestant may lose all digits and is still shown; ``fairlap.scenarios.digits`` says who is ranked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairlap.models.made_arrays import MOST_OF_HILBERT
from fairlap.models.operations.operation import Operation, result
from fairlap.models.spec import Fill, Made, Normal, Tensor, Weight
from fairlap.request.work import Precision

PREFIX = "hard-"
IN_LIBRARIES_OF_FLOAT32: tuple[Precision, ...] = ("fp32", "tf32")
"""The precisions of factorizations: their libraries have no 16-bit types on a CPU."""

_MOST_CANCELLED = 6  # powers of ten, so that float32 holds what is left


@dataclass(frozen=True)
class Hard(Operation):
    """``by_element``: the worst element counts rather than the norm. ``function`` names what frameworks compute."""

    task: ClassVar[str] = "numerical stability"
    implemented_in: ClassVar[str] = "fairlap.bench_models.hard_operations"
    by_element: ClassVar[bool] = False

    @property
    def function(self) -> str:
        return self.kind.removeprefix(PREFIX)


@dataclass(frozen=True)
class Rows(Hard):
    """Rows of numbers, each by itself."""

    rows: int
    numbers: int

    sizes: ClassVar[str] = "r{rows}-n{numbers}"
    shape_after: ClassVar[str] = "row"  # a number for each row, or as many as it has

    @property
    def fill(self) -> Fill:
        return Normal(1.0)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("numbers", (self.rows, self.numbers), self.fill),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("result", *((self.rows,) if self.shape_after == "row" else (self.rows, self.numbers))),)


@dataclass(frozen=True)
class CancellingRows(Rows):
    """``cancelled``: by how many powers of ten a result is below the sum of the sizes of its terms."""

    cancelled: int

    sizes: ClassVar[str] = f"{Rows.sizes}-c{{cancelled}}"

    @property
    def is_possible(self) -> bool:
        return self.rows >= 1 and self.numbers >= 2 and 0 <= self.cancelled <= _MOST_CANCELLED


@dataclass(frozen=True)
class Sum(CancellingRows):
    kind: ClassVar[str] = "hard-sum"

    @property
    def fill(self) -> Fill:
        return Made("cancelling", self.cancelled)

    @property
    def operations(self) -> int:
        """Additions."""
        return self.rows * (self.numbers - 1)


@dataclass(frozen=True)
class Dot(CancellingRows):
    kind: ClassVar[str] = "hard-dot"

    @property
    def macs(self) -> int:
        return self.rows * self.numbers

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        shape = (self.rows, self.numbers)
        return (Tensor("a", shape, Made("opposed")), Tensor("b", shape, Made("nearly_repeated", self.cancelled)))


@dataclass(frozen=True)
class OffsetRows(Rows):
    """Numbers of size one around an offset."""

    offset: int

    sizes: ClassVar[str] = f"{Rows.sizes}-o{{offset}}"

    @property
    def is_possible(self) -> bool:
        return self.rows >= 1 and self.numbers >= 2 and self.offset >= 0

    @property
    def fill(self) -> Fill:
        return Normal(1.0, float(self.offset))


@dataclass(frozen=True)
class LogSumExp(OffsetRows):
    kind: ClassVar[str] = "hard-logsumexp"


@dataclass(frozen=True)
class Variance(OffsetRows):
    """By the number of elements, not one less."""

    kind: ClassVar[str] = "hard-variance"


@dataclass(frozen=True)
class LayerNorm(OffsetRows):
    """Without scale and shift."""

    kind: ClassVar[str] = "hard-layernorm"
    shape_after: ClassVar[str] = "whole"


@dataclass(frozen=True)
class Softmax(Rows):
    """Of scores that are spread by ``spread``."""

    spread: int

    kind: ClassVar[str] = "hard-softmax"
    sizes: ClassVar[str] = f"{Rows.sizes}-s{{spread}}"
    shape_after: ClassVar[str] = "whole"

    @property
    def fill(self) -> Fill:
        return Normal(float(self.spread))


@dataclass(frozen=True)
class Halves(Rows):
    """Half of each number, of which half are subnormal: a unit that flushes them to zero loses them all."""

    kind: ClassVar[str] = "hard-subnormal"
    shape_after: ClassVar[str] = "whole"
    by_element: ClassVar[bool] = True
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32", "bf16", "tf32")  # fp16 has none of these numbers

    @property
    def fill(self) -> Fill:
        return Made("subnormal")

    @property
    def operations(self) -> int:
        return self.rows * self.numbers


@dataclass(frozen=True)
class Specials(Rows):
    """Of rows with NaN and infinities, which are to come out as in IEEE 754."""

    @property
    def fill(self) -> Fill:
        return Made("specials")


@dataclass(frozen=True)
class SpecialMaximum(Specials):
    kind: ClassVar[str] = "hard-special-max"


@dataclass(frozen=True)
class SpecialSoftmax(Specials):
    kind: ClassVar[str] = "hard-special-softmax"
    shape_after: ClassVar[str] = "whole"


@dataclass(frozen=True)
class SpecialSort(Specials):
    """Ascending; NaN is last."""

    kind: ClassVar[str] = "hard-special-sort"
    shape_after: ClassVar[str] = "whole"


@dataclass(frozen=True)
class CancellingProduct(Hard):
    """A weight A (M, K) times the transpose of an input B (N, K)."""

    m: int
    n: int
    k: int
    cancelled: int

    kind: ClassVar[str] = "hard-matmul"
    sizes: ClassVar[str] = "m{m}-n{n}-k{k}-c{cancelled}"

    @property
    def is_possible(self) -> bool:
        return min(self.m, self.n) >= 1 and self.k >= 2 and 0 <= self.cancelled <= _MOST_CANCELLED

    @property
    def macs(self) -> int:
        return self.m * self.n * self.k

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("b", (self.n, self.k), Made("nearly_repeated", self.cancelled)),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("result", self.m, self.n),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        return (Weight("a", (self.m, self.k), Made("opposed")),)


@dataclass(frozen=True)
class Solve(Hard):
    """A x = b for ``RIGHT_SIDES`` columns b, by LU factorization with pivots."""

    n: int

    sizes: ClassVar[str] = "n{n}"
    precisions: ClassVar[tuple[Precision, ...]] = IN_LIBRARIES_OF_FLOAT32
    RIGHT_SIDES: ClassVar[int] = 4

    @property
    def function(self) -> str:
        return "solve"

    @property
    def matrix(self) -> Fill:
        raise NotImplementedError

    @property
    def macs(self) -> int:
        """Of the factorization, n^3 / 3, and of two triangular solves, n^2 for each right side."""
        return self.n**3 // 3 + self.RIGHT_SIDES * self.n**2

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("b", (self.n, self.RIGHT_SIDES)),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("result", self.n, self.RIGHT_SIDES),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        return (Weight("a", (self.n, self.n), self.matrix),)


@dataclass(frozen=True)
class SolveHilbert(Solve):
    """Of the Hilbert matrix times an integer that makes all its entries integers."""

    kind: ClassVar[str] = "hard-solve-hilbert"

    @property
    def is_possible(self) -> bool:
        return 1 <= self.n <= MOST_OF_HILBERT

    @property
    def matrix(self) -> Fill:
        return Made("hilbert")


@dataclass(frozen=True)
class SolveGraded(Solve):
    """Of a matrix whose columns fall in size by ``grades`` powers of ten."""

    grades: int

    kind: ClassVar[str] = "hard-solve-graded"
    sizes: ClassVar[str] = f"{Solve.sizes}-g{{grades}}"

    @property
    def matrix(self) -> Fill:
        return Made("graded", self.grades)


@dataclass(frozen=True)
class LargeScores(Hard):
    """Attention of one head whose queries are ``spread`` times larger than usual."""

    positions: int
    width: int
    spread: int

    kind: ClassVar[str] = "hard-attention"
    sizes: ClassVar[str] = "t{positions}-d{width}-s{spread}"

    @property
    def macs(self) -> int:
        return 2 * self.positions**2 * self.width

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        shape = (1, 1, self.positions, self.width)
        return (Tensor("query", shape, Normal(float(self.spread))), Tensor("key", shape), Tensor("value", shape))

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("result", 1, 1, self.positions, self.width),)


HARD_KINDS: tuple[type[Operation], ...] = (
    *(Sum, Dot, CancellingProduct, SolveHilbert, SolveGraded, Softmax, LogSumExp, LayerNorm, Variance, LargeScores),
    *(Halves, SpecialMaximum, SpecialSoftmax, SpecialSort),
)


def is_hard(operation: Operation | None) -> bool:
    return isinstance(operation, Hard)

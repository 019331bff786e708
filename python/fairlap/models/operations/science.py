"""Transforms, sparse products, random numbers, sorting and sums by segment.

Random numbers are checked by their distribution, as their bits are free. Operations are counted as published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fairlap.models.operations.operation import FLOAT32_BYTES, Operation, result
from fairlap.models.spec import Integers, Normal, Tensor, Weight
from fairlap.request.work import Precision

_MOST_SEED = 2**31 - 1
_STRUCTURE_SEED = 7


@dataclass(frozen=True)
class Science(Operation):
    """``function`` is what frameworks have an implementation of."""

    implemented_in: ClassVar[str] = "fairlap.bench_models.science_operations"
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32",)

    @property
    def function(self) -> str:
        return self.kind


@dataclass(frozen=True)
class Fourier(Science):
    """Transforms of real numbers along the last axes: 2.5 N log2 N operations of N points, as FFTW counts them.

    Every field is an axis, but for ``batch``, which is 1 where it is none.
    """

    task: ClassVar[str] = "Fourier transform"

    @property
    def function(self) -> str:
        return "fft"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the signals, after the axis of a batch."""
        return tuple(size for name, size in vars(self).items() if name != "batch")

    @property
    def signals(self) -> int:
        return int(vars(self).get("batch", 1))

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
        return (result("real", *shape), result("imaginary", *shape))


@dataclass(frozen=True)
class Fft(Fourier):
    n: int
    batch: int

    kind: ClassVar[str] = "fft"
    sizes: ClassVar[str] = "n{n}-b{batch}"


@dataclass(frozen=True)
class Fft2(Fourier):
    height: int
    width: int
    batch: int

    kind: ClassVar[str] = "fft2"
    sizes: ClassVar[str] = "h{height}-w{width}-b{batch}"


@dataclass(frozen=True)
class Fft3(Fourier):
    depth: int
    height: int
    width: int

    kind: ClassVar[str] = "fft3"
    sizes: ClassVar[str] = "d{depth}-h{height}-w{width}"


@dataclass(frozen=True)
class SparseProduct(Science):
    """A sparse matrix of ``n`` rows with ``nonzeros`` each, times a vector. Where they are is part of the operation."""

    n: int
    nonzeros: int

    kind: ClassVar[str] = "spmv"
    task: ClassVar[str] = "sparse product"
    sizes: ClassVar[str] = "n{n}-z{nonzeros}"

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
        return (result("product", self.n),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        return (Weight("values", (self.n * self.nonzeros,), Normal(self.nonzeros**-0.5)),)


@dataclass(frozen=True)
class Random(Science):
    """Numbers of the library's own generator, whose bits are free."""

    n: int

    task: ClassVar[str] = "random numbers"
    sizes: ClassVar[str] = "n{n}"

    @property
    def function(self) -> str:
        return self.kind.removeprefix("random-")

    @property
    def is_possible(self) -> bool:
        """Fewer numbers do not show their distribution."""
        return self.n >= 1000

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("seed", (2,), Integers(0, _MOST_SEED), "int32"),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("numbers", self.n),)


@dataclass(frozen=True)
class RandomUniform(Random):
    """From 0 to 1."""

    kind: ClassVar[str] = "random-uniform"


@dataclass(frozen=True)
class RandomNormal(Random):
    kind: ClassVar[str] = "random-normal"


@dataclass(frozen=True)
class Sort(Science):
    """Each row, ascending."""

    rows: int
    numbers: int

    kind: ClassVar[str] = "sort"
    task: ClassVar[str] = "sorting"
    sizes: ClassVar[str] = "r{rows}-n{numbers}"

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("numbers", (self.rows, self.numbers)),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("sorted", self.rows, self.numbers),)


@dataclass(frozen=True)
class SegmentSum(Science):
    """Rows of data added up by the number of their segment, in no order: an addition for each element."""

    rows: int
    width: int
    segments: int

    kind: ClassVar[str] = "segment-sum"
    task: ClassVar[str] = "sum by segment"
    sizes: ClassVar[str] = "n{rows}-d{width}-s{segments}"

    @property
    def operations(self) -> int:
        return self.rows * self.width

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        of_rows = Tensor("segments", (self.rows,), Integers(0, self.segments), "int32")
        return (Tensor("data", (self.rows, self.width)), of_rows)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("sums", self.segments, self.width),)


SCIENCE_KINDS: tuple[type[Operation], ...] = (
    *(Fft, Fft2, Fft3, SparseProduct, RandomUniform, RandomNormal, Sort, SegmentSum),
)

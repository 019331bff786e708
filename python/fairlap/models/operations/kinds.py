"""The kinds of operations: those of networks, without a bias, and all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairlap.models.operations.hard import HARD_KINDS
from fairlap.models.operations.linear_algebra import LINEAR_ALGEBRA_KINDS
from fairlap.models.operations.operation import FLOAT32_BYTES, Operation, result
from fairlap.models.operations.science import SCIENCE_KINDS
from fairlap.models.spec import Integers, Normal, Tensor, Weight


@dataclass(frozen=True)
class Gemm(Operation):
    """The product of a weight A (M, K) and an input B (K, N); a transposed one is stored the other way round."""

    m: int
    n: int
    k: int
    a_transposed: bool = False
    b_transposed: bool = False

    kind: ClassVar[str] = "gemm"
    task: ClassVar[str] = "matrix product"
    sizes: ClassVar[str] = "m{m}-n{n}-k{k}"

    @classmethod
    def grammar(cls) -> str:
        return f"{super().grammar()}(-at)?(-bt)?"

    @property
    def name(self) -> str:
        return super().name + ("-at" if self.a_transposed else "") + ("-bt" if self.b_transposed else "")

    @property
    def macs(self) -> int:
        return self.m * self.n * self.k

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("b", (self.n, self.k) if self.b_transposed else (self.k, self.n)),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("product", self.m, self.n),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        return (Weight("a", (self.k, self.m) if self.a_transposed else (self.m, self.k), Normal(self.k**-0.5)),)


@dataclass(frozen=True)
class Convolution(Operation):
    """Of images (N, C, H, W) with filters (K, C, height, width). Pairs are width, then height."""

    images: int
    channels: int
    width: int
    height: int
    filters: int
    filter_width: int
    filter_height: int
    pad_width: int
    pad_height: int
    stride_width: int
    stride_height: int

    kind: ClassVar[str] = "conv"
    task: ClassVar[str] = "convolution"
    sizes: ClassVar[str] = (
        "n{images}-c{channels}-w{width}-h{height}-k{filters}-f{filter_width}x{filter_height}"
        "-p{pad_width}x{pad_height}-s{stride_width}x{stride_height}"
    )

    @property
    def is_possible(self) -> bool:
        sizes = (self.images, self.channels, self.width, self.height, self.filters)
        steps = (self.filter_width, self.filter_height, self.stride_width, self.stride_height)
        return min(*sizes, *steps) >= 1 and min(self.width_after, self.height_after) >= 1

    @property
    def width_after(self) -> int:
        return (self.width + 2 * self.pad_width - self.filter_width) // self.stride_width + 1

    @property
    def height_after(self) -> int:
        return (self.height + 2 * self.pad_height - self.filter_height) // self.stride_height + 1

    @property
    def seen(self) -> int:
        """Elements under a filter at one place."""
        return self.channels * self.filter_width * self.filter_height

    @property
    def macs(self) -> int:
        return self.images * self.filters * self.height_after * self.width_after * self.seen

    @property
    def reference_scratch(self) -> int:
        """What the filters see of one image."""
        return self.seen * self.height_after * self.width_after

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("images", (self.images, self.channels, self.height, self.width)),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("convolved", self.images, self.filters, self.height_after, self.width_after),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        shape = (self.filters, self.channels, self.filter_height, self.filter_width)
        return (Weight("filters", shape, Normal(self.seen**-0.5)),)


@dataclass(frozen=True)
class Recurrent(Operation):
    """One layer, as wide as its inputs, over whole sequences (steps, sequences, hidden); it starts from 0.

    The rows of both weights are those of the gates, one gate after the other.
    """

    hidden: int
    sequences: int
    steps: int

    task: ClassVar[str] = "recurrent layer"
    sizes: ClassVar[str] = "h{hidden}-b{sequences}-t{steps}"
    gates: ClassVar[int]

    @property
    def macs(self) -> int:
        """Of the inputs and of the state before."""
        return 2 * self.sequential_macs

    @property
    def sequential_macs(self) -> int:
        return self.steps * self.sequences * self.gates * self.hidden * self.hidden

    @property
    def together(self) -> int:
        return self.sequences

    @property
    def reference_scratch(self) -> int:
        """The products of all inputs."""
        return self.steps * self.sequences * self.gates * self.hidden

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("sequence", (self.steps, self.sequences, self.hidden)),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("states", self.steps, self.sequences, self.hidden),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        shape, fill = (self.gates * self.hidden, self.hidden), Normal(self.hidden**-0.5)
        return (Weight("layer.weight_ih_l0", shape, fill), Weight("layer.weight_hh_l0", shape, fill))


@dataclass(frozen=True)
class Rnn(Recurrent):
    """With ReLU."""

    kind: ClassVar[str] = "rnn"
    gates: ClassVar[int] = 1


@dataclass(frozen=True)
class Lstm(Recurrent):
    """Gates: input, forget, cell, output."""

    kind: ClassVar[str] = "lstm"
    gates: ClassVar[int] = 4


@dataclass(frozen=True)
class Gru(Recurrent):
    """Gates: reset, update, new. The reset gate scales the product of the state, as in cuDNN."""

    kind: ClassVar[str] = "gru"
    gates: ClassVar[int] = 3


@dataclass(frozen=True)
class Embedding(Operation):
    """Rows of a table, looked up by their numbers. It multiplies nothing."""

    rows: int
    width: int
    lookups: int

    kind: ClassVar[str] = "embedding"
    task: ClassVar[str] = "table lookup"
    sizes: ClassVar[str] = "r{rows}-d{width}-n{lookups}"

    @property
    def bytes(self) -> int:
        """Of the table only the rows that are looked up, as if all were different."""
        return FLOAT32_BYTES * self.lookups * (1 + 2 * self.width)

    @property
    def read_weights(self) -> int:
        return min(self.lookups, self.rows) * self.width

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (Tensor("numbers", (self.lookups,), Integers(0, self.rows), "int32"),)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return (result("found", self.lookups, self.width),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        return (Weight("table", (self.rows, self.width), Normal(1.0)),)


KINDS: tuple[type[Operation], ...] = (
    *(Gemm, Convolution, Rnn, Lstm, Gru, Embedding),
    *(*HARD_KINDS, *LINEAR_ALGEBRA_KINDS, *SCIENCE_KINDS),
)


def operation_named(text: str) -> Operation | None:
    """Of any sizes, whether a list has them or not; None for what is not the name of an operation."""
    return next((found for kind in KINDS if (found := kind.named(text)) is not None), None)

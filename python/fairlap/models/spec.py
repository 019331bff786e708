"""The specification of a model, independent of frameworks: tensors, size, loss, tolerances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from fairlap.request.work import Mode, Precision

Dtype = Literal["float32", "float16", "float64", "int32", "int64", "int8", "uint8", "bool"]
Loss = Literal["cross_entropy", "mean_square"]

BATCH = "batch"
"""In a shape, the number of items."""


class Normal(msgspec.Struct, frozen=True, tag=True):
    """Drawn from a normal distribution."""

    std: float
    mean: float = 0.0


class Uniform(msgspec.Struct, frozen=True, tag=True):
    low: float
    high: float


class Integers(msgspec.Struct, frozen=True, tag=True):
    """Integers from ``low`` to ``high``, exclusive."""

    low: int
    high: int


class Constant(msgspec.Struct, frozen=True, tag=True):
    value: float


Fill = Normal | Uniform | Integers | Constant


STANDARD_NORMAL = Normal(1.0)


@dataclass(frozen=True)
class Tensor:
    """An input or an output. Images are NCHW, whatever layout an implementation prefers inside."""

    name: str
    shape: tuple[int | str, ...]
    fill: Fill = STANDARD_NORMAL
    dtype: Dtype = "float32"

    def sized(self, batch: int) -> tuple[int, ...]:
        return tuple(batch if size == BATCH else int(size) for size in self.shape)


@dataclass(frozen=True)
class Weight:
    """One array of float32. Convolutions are (out, in / groups, height, width), linear layers (out, in)."""

    name: str
    shape: tuple[int, ...]
    fill: Fill
    trained: bool = True  # False for running statistics: they get no gradient and do not count as parameters


@dataclass(frozen=True)
class Tolerance:
    """An output is right if its cosine is at least this and every element is within one of the two others."""

    cosine: float
    absolute: float
    relative: float


TOLERANCES: Mapping[Precision, Tolerance] = {
    "fp32": Tolerance(cosine=0.999, absolute=1e-4, relative=1e-3),
    "bf16": Tolerance(cosine=0.99, absolute=2e-2, relative=1e-1),
}


@dataclass(frozen=True)
class Spec:
    """One model. Everything else about it (weights, inputs, hashes, tolerances) is derived from here."""

    name: str
    task: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    weights: tuple[Weight, ...]
    parameters: int  # as published; a test proves that the weights add up to it
    gmacs_per_item: float | None  # as published, multiply-accumulates of one item's inference
    published: str  # where both figures were published
    loss: Loss = "mean_square"  # of the first output; what mode "grad" differentiates
    modes: tuple[Mode, ...] = ("infer", "grad")
    precisions: tuple[Precision, ...] = ("fp32", "bf16")
    tolerances: Mapping[Precision, Tolerance] = field(default_factory=lambda: TOLERANCES)
    default_batch: int = 1
    computes: bool = True  # False if only the call is checked, not its answer

    def trained_parameters(self) -> int:
        return sum(_product(weight.shape) for weight in self.weights if weight.trained)


def _product(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count

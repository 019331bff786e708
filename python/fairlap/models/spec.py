"""The specification of a model, independent of frameworks: tensors, size, loss, tolerances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import PRECISIONS_OF_MODELS, Mode, Precision

Dtype = Literal["float32", "float16", "float64", "int32", "int64", "int8", "uint8", "bool"]
Loss = Literal["cross_entropy", "mean_square", "square_error", "ctc", "own"]
"""Of the first output: the mean of minus the logarithm of the right classes' shares, classes last; the mean of its
squares, without labels; the mean square of its difference from the labels; connectionist temporal classification of
its frames, see ``fairlap.models.checks.losses``. Or a user's own function."""

LEARNS: tuple[Mode, ...] = ("infer", "grad", "train")
"""Modes of a whole model, which can be trained."""

PLAIN_TRAINING = Training(Sgd(lr=0.01, momentum=0.9))

LABELS = "labels"
BATCH_LABELS = "batch_labels"  # of these inputs alone, for training

BATCH = "batch"
"""In a shape, the number of items."""


class Normal(msgspec.Struct, frozen=True, tag=True):
    """Drawn from a normal distribution."""

    std: float
    mean: float = 0.0


class Uniform(msgspec.Struct, frozen=True, tag=True):
    low: float
    high: float


class Integers(msgspec.Struct, frozen=True, tag=True, repr_omit_defaults=True):
    """Integers from ``low`` to ``high``, exclusive.

    With a ``skew``, the first is the commonest and the one in place k comes as often as k to the power of -skew.
    """

    low: int
    high: int
    required: bool = True  # else others may be given
    skew: float = 0.0


class Constant(msgspec.Struct, frozen=True, tag=True):
    value: float


Hardness = Literal[
    "cancelling", "opposed", "nearly_repeated", "hilbert", "graded", "subnormal", "specials", "definite", "symmetric"
]


class Made(msgspec.Struct, frozen=True, tag=True):
    """Drawn so that rounding matters, or so that an algorithm may be applied; see ``fairlap.models.made_arrays``."""

    how: Hardness
    amount: float = 0.0  # of what makes it hard, such as the power of ten of a condition number


Fill = Normal | Uniform | Integers | Constant | Made


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
    """An output is right if its cosine is at least this and every element is within one of the two others.

    Where ``norm`` is given, the norm of the difference over that of the reference is at most this as well. Of a
    quantized model a single element may be off by steps, and all of them together by far less.
    """

    cosine: float
    absolute: float
    relative: float
    norm: float | None = None


TOLERANCES: Mapping[Precision, Tolerance] = {
    "fp32": Tolerance(cosine=0.999, absolute=1e-4, relative=1e-3),
    "bf16": Tolerance(cosine=0.99, absolute=2e-2, relative=1e-1),
}

UNIT_ROUNDOFF: Mapping[Precision, float] = {
    "fp32": 2.0**-24,
    "tf32": 2.0**-11,  # of a product's factors
    "fp16": 2.0**-11,
    "autocast": 2.0**-8,
    "bf16": 2.0**-8,
}
UNIT_ROUNDOFF_OF_TYPE: Mapping[str, float] = {
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float32": 2.0**-24,
    "float64": 2.0**-53,
    "complex64": 2.0**-24,
    "complex128": 2.0**-53,
}
"""What rounding to a precision changes at most, relative to the value. int8 and fp8 have none: see their own rules."""


@dataclass(frozen=True)
class Interface:
    """The inputs and outputs of a model in one mode, and its weights where it has others there."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    weights: tuple[Weight, ...] | None = None


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
    training: Training = PLAIN_TRAINING  # unless another one is asked for
    precisions: tuple[Precision, ...] = PRECISIONS_OF_MODELS
    # Of those, the ones whose steps of training are proven. Not in its text.
    trained_in: tuple[Precision, ...] = field(default=("fp32", "bf16", "autocast"), repr=False)
    tolerances: Mapping[Precision, Tolerance] = field(default_factory=lambda: TOLERANCES)
    default_batch: int = 1
    computes: bool = True  # False if only the call is checked, not its answer
    # Operators whose multiplications are not among the counted ones, which are then a lower bound. Not in its text.
    uncounted: tuple[str, ...] = field(default=(), repr=False)
    operations_per_item: float | None = None  # where they are no multiply-accumulates; an exponential counts as one
    data_set: str = ""  # labelled data from which it learns; see fairlap.data.labelled
    # Of a model that generates: the input whose columns are handed to it one after the other, after the others.
    continuation: str = field(default="", repr=False)
    # Elements of its weights that a call reads at least, where that is not all of them. Not in its text, which names
    # the files of weights and inputs: those are the same.
    read_weights: int | None = field(default=None, repr=False)

    # In modes whose calls have others than its ``inputs`` and ``outputs``. Not in its text: ``in_mode`` has them there.
    interfaces: Mapping[Mode, Interface] = field(default_factory=dict, repr=False)

    def in_mode(self, mode: Mode) -> Spec:
        """With the inputs, outputs and weights that its calls have there."""
        found = self.interfaces.get(mode)
        if found is None:
            return self
        weights = self.weights if found.weights is None else found.weights
        return replace(self, inputs=found.inputs, outputs=found.outputs, weights=weights)

    def tolerance(self, precision: Precision) -> Tolerance:
        """Find the spec's own tolerance; else that of bfloat16, as much narrower as the precision rounds less.

        Raises KeyError for int8 and fp8, whose answers are compared in another way.
        """
        found = self.tolerances.get(precision)
        if found is not None:
            return found
        wide, narrower = self.tolerances["bf16"], UNIT_ROUNDOFF[precision] / UNIT_ROUNDOFF["bf16"]
        return Tolerance(
            # The angle that a cosine stands for grows as its square root.
            cosine=1 - (1 - wide.cosine) * narrower**2,
            absolute=wide.absolute * narrower,
            relative=wide.relative * narrower,
        )

    def label_tensor(self) -> Tensor | None:
        """Describe what the loss compares the first output with.

        That is a class for each row, or a value for each element. A label that frames spell is half as long, which is
        enough also where it repeats itself.
        """
        first = self.outputs[0].shape
        if self.loss == "ctc":
            return Tensor(LABELS, (first[0], int(first[1]) // 2), Integers(0, int(first[-1])), "int32")
        if self.loss == "cross_entropy":
            return Tensor(LABELS, first[:-1], Integers(0, int(first[-1])), "int32")
        return Tensor(LABELS, first) if self.loss == "square_error" else None

    @property
    def tokens_of_an_answer(self) -> int:
        """That a model generates for one item; 0 for a model that does not generate."""
        shapes = {tensor.name: tensor.shape for tensor in self.inputs}
        return 1 + int(shapes[self.continuation][1]) if self.continuation else 0

    def has_statistics(self) -> bool:
        """Whether its normalisations keep moving averages."""
        return any(not weight.trained for weight in self.weights)

    def trained_parameters(self) -> int:
        return sum(_product(weight.shape) for weight in self.weights if weight.trained)


def _product(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count

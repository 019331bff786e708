"""An operation: what it takes and gives, and what it multiplies. Its name holds all its sizes.

Sizes are those of one call, so the batch of the work is always 1.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass
from typing import ClassVar, Self

from fairlap.models.spec import Constant, Spec, Tensor, Weight
from fairlap.request.work import Precision

FLOAT32_BYTES, FLOAT64_BYTES = 4, 8
_SETS_OF_INPUTS = 5  # that take turns in a contestant's calls, those of the drawn calls included


def result(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, Constant(0.0))


@dataclass(frozen=True)
class Operation(ABC):
    """Two of equal sizes are the same operation."""

    kind: ClassVar[str]
    task: ClassVar[str]
    sizes: ClassVar[str]  # in the name, after the kind: each field in its place, "m{m}-n{n}", in the fields' order
    implemented_in: ClassVar[str] = "fairlap.bench_models.operations"  # the package with a module for each framework
    under_roof: ClassVar[bool] = True  # whether its operations are a lower bound, so that a roof says something
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32", "fp16", "bf16", "autocast", "tf32")

    @classmethod
    def named(cls, text: str) -> Self | None:
        """None when the text is no name of this kind; every size is at least 1, and padding at least 0."""
        found = re.fullmatch(cls.grammar(), text)
        if found is None:
            return None
        operation = cls(*[int(part) if part.isdecimal() else bool(part) for part in found.groups(default="")])
        return operation if operation.name == text and operation.is_possible else None

    @classmethod
    def grammar(cls) -> str:
        """Of the name; it has a group for each field, in their order."""
        return f"{cls.kind}-{re.sub(r'{[a-z_]+}', r'([0-9]+)', cls.sizes)}"

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.sizes.format_map(vars(self))}"

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one call. Places that see padding count like others, and activations do not."""
        return 0

    @property
    @abstractmethod
    def inputs(self) -> tuple[Tensor, ...]: ...

    @property
    @abstractmethod
    def outputs(self) -> tuple[Tensor, ...]: ...

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    @property
    def weights(self) -> tuple[Weight, ...]:
        return ()

    @property
    def is_possible(self) -> bool:
        return all(size >= 1 for size in astuple(self) if not isinstance(size, bool))

    @property
    def sequential_macs(self) -> int:
        """Those that wait for the result of the step before."""
        return 0

    @property
    def together(self) -> int:
        """How many rows each read of a weight serves in the products that wait for each other."""
        return 1

    @property
    def operations(self) -> int:
        """A multiplication and an addition each; or what was published of an algorithm that is no product."""
        return 2 * self.macs

    @property
    def bytes(self) -> int:
        """In fp32, each array once: what a call moves at least, unless an array is still in a cache."""
        return FLOAT32_BYTES * (self._weight_count + self._input_count + self._output_count)

    @property
    def bytes_to_race(self) -> int:
        """About what the reference and one contestant need, each with its copies of weights, inputs and outputs."""
        arrays = self._weight_count + self._input_count + self._output_count
        contestant = 3 * self._weight_count + _SETS_OF_INPUTS * self._input_count + 3 * self._output_count
        return FLOAT64_BYTES * (arrays + self.reference_scratch) + FLOAT32_BYTES * contestant

    @property
    def bytes_on_disk(self) -> int:
        """Of weights, sets of inputs, and the reference's answer to each."""
        drawn = self._weight_count + _SETS_OF_INPUTS * self._input_count
        return FLOAT32_BYTES * drawn + FLOAT64_BYTES * _SETS_OF_INPUTS * self._output_count

    @property
    def read_weights(self) -> int | None:
        """Elements of the weights that a call reads; None for all."""
        return None

    @property
    def reference_scratch(self) -> int:
        """Elements that the reference holds besides its arrays."""
        return 0

    @property
    def intensity(self) -> float:
        """Operations for each byte in fp32."""
        return self.operations / self.bytes

    def spec(self) -> Spec:
        return Spec(
            name=self.name,
            task=self.task,
            inputs=self.inputs,
            outputs=self.outputs,
            weights=self.weights,
            parameters=self._weight_count,
            gmacs_per_item=self.macs / 1e9 if self.under_roof else None,
            operations_per_item=None if self.macs or not self.under_roof else float(self.operations),
            read_weights=self.read_weights,
            published="arithmetic: the sizes in its name",
            modes=("infer",),
            precisions=self.precisions,
        )

    @property
    def _weight_count(self) -> int:
        return sum(math.prod(weight.shape) for weight in self.weights)

    @property
    def _input_count(self) -> int:
        return sum(math.prod(tensor.sized(1)) for tensor in self.inputs)

    @property
    def _output_count(self) -> int:
        return sum(math.prod(tensor.sized(1)) for tensor in self.outputs)

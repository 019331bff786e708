"""The work of one contestant: a model with its weights, inputs, mode and precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, Labels
from fairlap.models.registry import implementation_for, reference_at, why_not_at
from fairlap.models.spec import Spec
from fairlap.request.fields.sizes.padding import PaddedSize
from fairlap.request.fields.training import Training
from fairlap.request.work import Mode, Precision


@dataclass(frozen=True)
class Workload:
    """Arrays are C-contiguous, read-only and aligned to 64 bytes, so that every framework may share them.

    ``labels`` are there when the loss compares with some: int32, one for each row of the first output's leading
    axes; or float32 of the output's shape.
    """

    spec: Spec
    package: str  # of the model, such as "fairlap.bench_models.mlp"; or the folder of a user's model
    batch: int
    mode: Mode
    precision: Precision
    weights: Arrays
    inputs: Arrays
    labels: Labels | None = None
    training: Training | None = None  # in mode "train"
    calibration: tuple[Path, ...] = ()  # sets of inputs that a quantization may look at
    free_sizes: Mapping[str, int] = field(default_factory=dict)  # where they are not the model's usual ones
    padded: tuple[PaddedSize, ...] = ()  # sizes of calls, of which the model gets others, as its ``inputs`` are

    def calibration_sets(self) -> Iterator[Arrays]:
        for file in self.calibration:
            yield safetensors.read(file)

    def implementation(self, framework: str) -> Any:
        """See ``implementation_for``. One that is made from a graph is given the precision; adapters convert others."""
        found = implementation_for(self.package, framework, self.batch)
        if hasattr(found, "hold_in"):
            found.hold_in(self.precision)
        return self._in_mode(found)

    def why_not_in(self, framework: str, implementation: str) -> str:
        return why_not_at(self.package, framework, implementation)

    def implementation_of_reference(self) -> Any:
        return self._in_mode(reference_at(self.package))

    def _in_mode(self, implementation: Any) -> Any:
        """Let one of a function compute the derivative of the mode; of an environment, give the agent of the mode."""
        if hasattr(implementation, "in_mode"):
            return implementation.in_mode(self.mode)
        if hasattr(implementation, "differentiate"):
            implementation.differentiate(self.mode)
        return implementation

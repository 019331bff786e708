"""The work of one contestant: a model with its weights, inputs, mode and precision."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.registry import implementation_at
from fairlap.models.spec import Spec
from fairlap.request.work import Mode, Precision

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Workload:
    """Arrays are C-contiguous, read-only and aligned to 64 bytes, so that every framework may share them.

    ``labels`` (int32, one for each row of the first output's leading axes) are there when the loss is
    cross-entropy.
    """

    spec: Spec
    package: str  # of the model, such as "fairlap.bench_models.mlp"; or the folder of a user's model
    batch: int
    mode: Mode
    precision: Precision
    weights: Arrays
    inputs: Arrays
    labels: npt.NDArray[np.int32] | None = None

    def implementation(self, framework: str) -> Any:
        """See ``implementation_at``."""
        return implementation_at(self.package, framework)

    def implementation_of_reference(self) -> ModuleType:
        return import_module(f"{self.package}.reference")


def hash_of(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{name} {little.dtype.str} {list(array.shape)}\n".encode())
        digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()

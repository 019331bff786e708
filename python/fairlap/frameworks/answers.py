"""What a call returned, under the names that the check knows, as float32 arrays in C order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.workloads.spec import Spec

LOSS = "loss"
GRADIENT = "grad/"

Answers = dict[str, npt.NDArray[np.float32]]


def as_float32(array: Any) -> npt.NDArray[np.float32]:
    """Keeps a shape without axes, as ``ascontiguousarray`` does not."""
    return np.asarray(array, dtype=np.float32, order="C")


def named_outputs(spec: Spec, results: Iterable[Any]) -> Answers:
    return {tensor.name: as_float32(result) for tensor, result in zip(spec.outputs, results, strict=True)}


def named_gradients(loss: Any, gradients: Mapping[str, Any]) -> Answers:
    return {LOSS: as_float32(loss), **{GRADIENT + name: as_float32(each) for name, each in gradients.items()}}


def trained_names(spec: Spec) -> list[str]:
    return [weight.name for weight in spec.weights if weight.trained]

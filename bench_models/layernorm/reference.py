"""Layer normalisation in NumPy, in the precision of the inputs."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from fairlap.bench_models.elementary import layer_norm
from fairlap.bench_models.layernorm.spec import EPSILON
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    return {"normed": layer_norm(inputs["hidden"], weights, "norm", EPSILON)}

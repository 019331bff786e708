"""Attention in NumPy, in the precision of the inputs."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from fairlap.bench_models.attention.spec import SCALE
from fairlap.bench_models.elementary import softmax
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    scores = inputs["query"] @ weights["key"].transpose(0, 2, 1) * SCALE
    return {"attended": softmax(scores) @ weights["value"]}

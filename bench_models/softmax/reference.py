"""Softmax in NumPy, in the precision of what it is given."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from fairlap.workloads.workload import Arrays

from bench_models.elementary import softmax


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    return {"shares": softmax(inputs["scores"])}

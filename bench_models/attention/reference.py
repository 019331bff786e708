"""Attention in NumPy, in the precision of what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.workloads.workload import Arrays

from bench_models.attention.spec import SCALE
from bench_models.elementary import softmax


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    scores = inputs["query"] @ weights["key"].transpose(0, 2, 1) * SCALE
    return {"attended": np.asarray(softmax(scores) @ weights["value"])}

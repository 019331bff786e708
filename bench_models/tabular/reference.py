"""The perceptron in NumPy, in the precision of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.elementary import linear
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    hidden = np.maximum(linear(inputs["features"], weights, "first"), 0.0)
    hidden = np.maximum(linear(hidden, weights, "second"), 0.0)
    return {"answers": linear(hidden, weights, "third")}

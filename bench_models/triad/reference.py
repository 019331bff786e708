"""The triad in NumPy, in the precision of the inputs."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from fairlap.bench_models.triad.spec import SCALE
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    return {"sum": inputs["left"] + inputs["right"].dtype.type(SCALE) * inputs["right"]}

"""The sum in NumPy, in the precision of the inputs."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    return {"more": inputs["some"] + 1}

"""Reading a prompt with GPT-2 in NumPy."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from fairlap.bench_models.gpt2.numpy_blocks import extend, nothing_read
from fairlap.bench_models.gpt2.weights import SMALL
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    input_ids = inputs["input_ids"]
    return extend(weights, SMALL, input_ids, nothing_read(SMALL, input_ids))

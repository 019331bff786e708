"""The model in NumPy."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from fairlap.bench_models.characters.spec import SMALL
from fairlap.bench_models.gpt2.numpy_blocks import every_logit
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    return {"logits": every_logit(weights, SMALL, inputs["input_ids"])}

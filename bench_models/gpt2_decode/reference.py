"""One step of decoding with GPT-2 in NumPy."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from fairlap.bench_models.gpt2.numpy_blocks import extend
from fairlap.bench_models.gpt2.weights import SMALL
from fairlap.bench_models.gpt2_decode.spec import PAST_NAMES
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    caches = [inputs[name] for name in PAST_NAMES]
    past = list(zip(caches[::2], caches[1::2], strict=True))
    return extend(weights, SMALL, inputs["input_ids"], past)

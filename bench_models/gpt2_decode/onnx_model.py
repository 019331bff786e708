"""One step of decoding with GPT-2 as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.gpt2.onnx_blocks import build_model
from fairlap.bench_models.gpt2.weights import SMALL
from fairlap.bench_models.gpt2_decode.spec import PAST, PAST_NAMES, SPEC
from fairlap.models.arrays import Arrays


def build(weights: Arrays, batch: int) -> Any:
    return build_model(SPEC, SMALL, weights, batch, tokens=1, known=PAST, past=PAST_NAMES)

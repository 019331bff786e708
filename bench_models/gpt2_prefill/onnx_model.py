"""Reading a prompt with GPT-2 as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.gpt2.onnx_blocks import build_model
from fairlap.bench_models.gpt2.weights import SMALL
from fairlap.bench_models.gpt2_prefill.spec import TOKENS, with_sizes
from fairlap.models.arrays import Arrays


def build(weights: Arrays, batch: int, tokens: int = TOKENS) -> Any:
    return build_model(with_sizes(tokens), SMALL, weights, batch, tokens, known=0, past=())

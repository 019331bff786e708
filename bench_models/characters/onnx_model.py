"""The model as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.characters.spec import SMALL, SPEC, TOKENS
from fairlap.bench_models.gpt2.onnx_blocks import build_model
from fairlap.models.arrays import Arrays


def build(weights: Arrays, batch: int) -> Any:
    return build_model(SPEC, SMALL, weights, batch, TOKENS, known=0, past=(), every_logit=True)

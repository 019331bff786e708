"""A step of an answer as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.characters_generate.spec import ANSWER, SPEC
from fairlap.bench_models.gpt2.onnx_generation import build_step
from fairlap.models.arrays import Arrays


def build(weights: Arrays, batch: int) -> Any:
    return build_step(SPEC.name, ANSWER.size, weights, batch)

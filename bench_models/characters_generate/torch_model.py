"""The steps of an answer as a PyTorch module."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.characters_generate.spec import ANSWER
from fairlap.bench_models.gpt2.torch_blocks import with_weights
from fairlap.bench_models.gpt2.torch_generation import Generating
from fairlap.models.arrays import Arrays


def build(weights: Arrays) -> Any:
    model = with_weights(Generating, ANSWER.size, weights)
    model.positions = ANSWER.positions
    return model

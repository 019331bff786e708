"""The steps of an answer as a TensorFlow module."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.characters_generate.spec import ANSWER
from fairlap.bench_models.gpt2.tensorflow_blocks import to_other_layout
from fairlap.bench_models.gpt2.tensorflow_generation import Generating
from fairlap.models.arrays import Arrays


def build(weights: Arrays, dtype: Any) -> Generating:
    return Generating(ANSWER, weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return to_other_layout(name, array)

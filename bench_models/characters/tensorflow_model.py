"""The model as a TensorFlow module."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.characters.spec import SMALL
from fairlap.bench_models.gpt2.tensorflow_blocks import GPT2, to_other_layout
from fairlap.models.arrays import Arrays


class Characters(GPT2):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (self.every_logit(inputs["input_ids"]),)


def build(weights: Arrays, dtype: Any) -> Characters:
    return Characters(SMALL, weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return to_other_layout(name, array)

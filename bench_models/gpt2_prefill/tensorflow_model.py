"""Reading a prompt with GPT-2 as a TensorFlow module."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.gpt2.tensorflow_blocks import GPT2, to_other_layout
from fairlap.bench_models.gpt2.weights import SMALL
from fairlap.models.arrays import Arrays


class Prefill(GPT2):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any, ...]:
        return self.extend(inputs["input_ids"], ())


def build(weights: Arrays, dtype: Any) -> Prefill:
    return Prefill(SMALL, weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return to_other_layout(name, array)

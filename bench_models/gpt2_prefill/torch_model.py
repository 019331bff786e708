"""Reading a prompt with GPT-2 as a PyTorch module."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.gpt2.torch_blocks import GPT2, with_weights
from fairlap.bench_models.gpt2.weights import SMALL
from fairlap.models.arrays import Arrays


class Prefill(GPT2):
    def forward(self, input_ids: Any) -> tuple[Any, ...]:
        return self.extend(input_ids, ())


def build(weights: Arrays) -> Any:
    return with_weights(Prefill, SMALL, weights)

"""One step of decoding with GPT-2 as a PyTorch module."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.gpt2.torch_blocks import GPT2, with_weights
from fairlap.bench_models.gpt2.weights import SMALL
from fairlap.bench_models.gpt2_decode.spec import PAST_NAMES
from fairlap.models.arrays import Arrays


class Decode(GPT2):
    def forward(self, input_ids: Any, **past: Any) -> tuple[Any, ...]:
        return self.extend(input_ids, [past[name] for name in PAST_NAMES])


def build(weights: Arrays) -> Any:
    return with_weights(Decode, SMALL, weights)

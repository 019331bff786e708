"""The model as a PyTorch module."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.characters.spec import SMALL
from fairlap.bench_models.gpt2.torch_blocks import GPT2, with_weights
from fairlap.models.arrays import Arrays


class Characters(GPT2):
    def forward(self, input_ids: Any) -> tuple[Any]:
        return (self.every_logit(input_ids),)


def build(weights: Arrays) -> Any:
    return with_weights(Characters, SMALL, weights)

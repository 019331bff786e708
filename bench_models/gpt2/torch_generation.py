"""Answering with GPT-2 in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlap.bench_models.gpt2.torch_blocks import GPT2
from torch.nn import functional


class Generating(GPT2):
    """Through a cache that grows from step to step; or that has room for all ``positions``, so that a step is one
    graph of fixed shapes."""

    positions: int

    def first(self, prompt: Any) -> tuple[Any, Any, Sequence[Any]]:
        return _chosen(self.extend(prompt, ()))

    def following(self, caches: Sequence[Any], tokens: Any) -> tuple[Any, Any, Sequence[Any]]:
        return _chosen(self.extend(tokens, caches))

    def first_of_fixed_shape(self, prompt: Any) -> tuple[Any, Any, Sequence[Any]]:
        chosen, logits, caches = self.first(prompt)
        room = self.positions - prompt.shape[1]
        return chosen, logits, [functional.pad(each, (0, 0, 0, room)) for each in caches]

    def following_of_fixed_shape(self, caches: Sequence[Any], tokens: Any, position: Any) -> tuple[Any, Any]:
        """Written into the caches."""
        return _chosen(self.extend(tokens, caches, position))[:2]


def _chosen(step: tuple[Any, ...]) -> tuple[Any, Any, Sequence[Any]]:
    logits, *caches = step
    return logits.argmax(-1), logits, caches

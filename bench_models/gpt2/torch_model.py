"""The models of this family as PyTorch modules."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from fairlap.bench_models.gpt2.torch_blocks import GPT2, with_weights
from fairlap.bench_models.gpt2_decode.spec import PAST_NAMES
from fairlap.models.arrays import Arrays
from torch.nn import functional


class EveryLogit(GPT2):
    def forward(self, input_ids: Any) -> tuple[Any]:
        return (self.every_logit(input_ids),)


class Prefill(GPT2):
    def forward(self, input_ids: Any) -> tuple[Any, ...]:
        return self.extend(input_ids, ())


class Decode(GPT2):
    def forward(self, input_ids: Any, **past: Any) -> tuple[Any, ...]:
        return self.extend(input_ids, [past[name] for name in PAST_NAMES])


class Answer(GPT2):
    """Through a cache that grows from step to step; or that has room for all ``positions``.

    With the latter a step is one graph of fixed shapes.
    """

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


_MODULES = {"every_logit": EveryLogit, "prefill": Prefill, "decode": Decode, "answer": Answer}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._spec = spec

    def build(self, weights: Arrays) -> Any:
        model = with_weights(_MODULES[self._spec.DOES], self._spec.SIZE, weights)
        if self._spec.DOES == "answer":
            model.positions = self._spec.ANSWER.positions
        return model


def _chosen(step: tuple[Any, ...]) -> tuple[Any, Any, Sequence[Any]]:
    logits, *caches = step
    return logits.argmax(-1), logits, caches

"""The models of this family as TensorFlow modules."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import tensorflow as tf
from fairlap.bench_models.gpt2.tensorflow_blocks import GPT2, to_other_layout
from fairlap.bench_models.gpt2_decode.spec import PAST_NAMES
from fairlap.models.arrays import Arrays

Step = tuple[Any, Any, list[Any]]


class EveryLogit(GPT2):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (self.every_logit(inputs["input_ids"]),)


class Prefill(GPT2):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any, ...]:
        return self.extend(inputs["input_ids"], ())


class Decode(GPT2):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any, ...]:
        return self.extend(inputs["input_ids"], [inputs[name] for name in PAST_NAMES])


class Answer(GPT2):
    """Through a cache that grows from step to step; or that has room for all ``positions``.

    With the latter a step is one graph of fixed shapes.
    """

    positions: int

    def first(self, prompt: Any) -> Step:
        return _chosen(self.extend(prompt, ()))

    def following(self, caches: Sequence[Any], tokens: Any) -> Step:
        return _chosen(self.extend(tokens, caches))

    def first_of_fixed_shape(self, prompt: Any) -> Step:
        chosen, logits, caches = self.first(prompt)
        room = ((0, 0), (0, 0), (0, self.positions - prompt.shape[1]), (0, 0))
        return chosen, logits, [tf.pad(each, room) for each in caches]

    def following_of_fixed_shape(self, caches: Sequence[Any], tokens: Any, position: Any) -> Step:
        return _chosen(self.extend(tokens, caches, position))

    def growing_caches(self, batch: int, dtype: Any) -> list[Any]:
        """Describe what the caches look like, whatever their length is."""
        shape = (batch, self.size.heads, None, self.size.head)
        return [tf.TensorSpec(shape, dtype) for _ in range(2 * self.size.layers)]


_MODULES = {"every_logit": EveryLogit, "prefill": Prefill, "decode": Decode, "answer": Answer}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._spec = spec

    def build(self, weights: Arrays, dtype: Any) -> Any:
        model: Any = _MODULES[self._spec.DOES](self._spec.SIZE, weights, dtype)
        if self._spec.DOES == "answer":
            model.positions = self._spec.ANSWER.positions
        return model

    def canonical(self, name: str, array: Any) -> Any:
        return to_other_layout(name, array)


def _chosen(step: tuple[Any, ...]) -> Step:
    logits, *caches = step
    return tf.argmax(logits, axis=-1), logits, caches

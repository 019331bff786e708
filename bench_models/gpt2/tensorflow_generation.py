"""Answering with GPT-2 in TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from fairlap.bench_models.gpt2.generation import Answer
from fairlap.bench_models.gpt2.tensorflow_blocks import GPT2
from fairlap.models.arrays import Arrays

Step = tuple[Any, Any, list[Any]]


class Generating(GPT2):
    """Through a cache that grows from step to step; or that has room for all positions, so that a step is one graph of
    fixed shapes."""

    def __init__(self, answer: Answer, weights: Arrays, dtype: Any) -> None:
        super().__init__(answer.size, weights, dtype)
        self.answer = answer

    def first(self, prompt: Any) -> Step:
        return _chosen(self.extend(prompt, ()))

    def following(self, caches: Sequence[Any], tokens: Any) -> Step:
        return _chosen(self.extend(tokens, caches))

    def first_of_fixed_shape(self, prompt: Any) -> Step:
        chosen, logits, caches = self.first(prompt)
        room = ((0, 0), (0, 0), (0, self.answer.positions - prompt.shape[1]), (0, 0))
        return chosen, logits, [tf.pad(each, room) for each in caches]

    def following_of_fixed_shape(self, caches: Sequence[Any], tokens: Any, position: Any) -> Step:
        return _chosen(self.extend(tokens, caches, position))

    def growing_caches(self, batch: int, dtype: Any) -> list[Any]:
        """What they look like, whatever their length is."""
        shape = (batch, self.size.heads, None, self.size.head)
        return [tf.TensorSpec(shape, dtype) for _ in range(2 * self.size.layers)]


def _chosen(step: tuple[Any, ...]) -> Step:
    logits, *caches = step
    return tf.argmax(logits, axis=-1), logits, caches

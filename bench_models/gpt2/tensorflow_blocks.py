"""GPT-2 in TensorFlow. Matrices of linear layers are (in, out); the embedding, which is also the last one, stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.bench_models.gpt2.weights import EPSILON, Size
from fairlap.models.arrays import Arrays


class GPT2(tf.Module):
    """All tokens of all items are rows of one matrix, except where they attend to each other.

    A matrix times a stack of matrices is one operation per item, and its gradient one copy of the weights per item.
    """

    def __init__(self, size: Size, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.size = size
        self.variables_by_name = {
            name: tf.Variable(tf.cast(np.ascontiguousarray(to_other_layout(name, array)), dtype))
            for name, array in weights.items()
        }

    def extend(self, input_ids: Any, past: Sequence[Any], position: Any = None) -> tuple[Any, ...]:
        """Read tokens after ``past``, which is nothing, or the keys and the values of every layer in turn.

        With a position, it has room for all tokens, and the result has those of this one in it.
        """
        batch, tokens = input_ids.shape
        words = self._words()
        hidden, caches = self._read(words, input_ids, past, position)
        last = tf.reshape(hidden, (batch, tokens, -1))[:, -1]
        return (self._logits(words, last), *caches)

    def every_logit(self, input_ids: Any) -> Any:
        """After each token, for training."""
        batch, tokens = input_ids.shape
        words = self._words()
        hidden, _ = self._read(words, input_ids, ())
        return tf.reshape(self._logits(words, hidden), (batch, tokens, -1))

    def _words(self) -> Any:
        """Read the embedding once as a whole.

        A variable that rows were gathered from copies itself whenever it is read again, 154 MB for the logits.
        """
        return self.variables_by_name["wte.weight"].read_value()

    def _logits(self, words: Any, hidden: Any) -> Any:
        return tf.linalg.matmul(self._norm("ln_f", hidden), words, transpose_b=True)

    def _read(self, words: Any, input_ids: Any, past: Sequence[Any], position: Any = None) -> tuple[Any, list[Any]]:
        weights = self.variables_by_name
        batch, tokens = input_ids.shape
        known = position
        if position is None:
            known = tf.shape(past[0])[2] if past and past[0].shape[2] is None else past[0].shape[2] if past else 0
        hidden = tf.gather(words, input_ids) + weights["wpe.weight"][known : known + tokens]
        hidden = tf.reshape(hidden, (batch * tokens, self.size.width))
        caches: list[Any] = []
        for layer in range(self.size.layers):
            name = f"h.{layer}"
            parts = self._linear(f"{name}.attn.c_attn", self._norm(f"{name}.ln_1", hidden))
            attended, cache = self._attend(
                tf.reshape(parts, (batch, tokens, -1)), past[2 * layer : 2 * layer + 2], position
            )
            hidden += self._linear(f"{name}.attn.c_proj", attended)
            widened = self._linear(f"{name}.mlp.c_fc", self._norm(f"{name}.ln_2", hidden))
            hidden += self._linear(f"{name}.mlp.c_proj", tf.nn.gelu(widened, approximate=True))
            caches += cache
        return hidden, caches

    def _linear(self, name: str, hidden: Any) -> Any:
        weights = self.variables_by_name
        return tf.nn.bias_add(tf.linalg.matmul(hidden, weights[f"{name}.weight"]), weights[f"{name}.bias"])

    def _norm(self, name: str, hidden: Any) -> Any:
        shift, scale = self.variables_by_name[f"{name}.bias"], self.variables_by_name[f"{name}.weight"]
        mean, variance = tf.nn.moments(hidden, axes=[-1], keepdims=True)
        return tf.nn.batch_normalization(hidden, mean, variance, shift, scale, EPSILON)

    def _attend(self, parts: Any, past: Sequence[Any], position: Any) -> tuple[Any, list[Any]]:
        size = self.size
        batch, tokens, _ = parts.shape
        query, *cache = (
            tf.transpose(tf.reshape(part, (batch, tokens, size.heads, size.head)), (0, 2, 1, 3))
            for part in tf.split(parts, 3, axis=2)
        )
        if position is not None:
            cache = [_updated(held, new, position) for held, new in zip(past, cache, strict=True)]
        elif past:
            cache = [tf.concat(pair, axis=2) for pair in zip(past, cache, strict=True)]
        keys, values = cache
        scores = tf.linalg.matmul(query, keys, transpose_b=True) * size.head**-0.5
        if position is not None:
            scores = tf.where(tf.range(keys.shape[2]) <= position, scores, scores.dtype.min)
        elif not past:
            scores += tf.constant(np.triu(np.full((tokens, tokens), -np.inf), 1), scores.dtype)
        attended = tf.linalg.matmul(tf.nn.softmax(scores, axis=-1), values)
        return tf.reshape(tf.transpose(attended, (0, 2, 1, 3)), (batch * tokens, size.width)), cache


def _updated(held: Any, new: Any, position: Any) -> Any:
    """TensorFlow writes into no tensor, so XLA writes the whole cache again."""
    places = tf.range(held.shape[2])[:, tf.newaxis]
    return tf.where(places == position, new, held)


def to_other_layout(name: str, array: Any) -> Any:
    """From the spec's to TensorFlow's, and back."""
    return array if name.startswith(("wte", "wpe")) else array.T

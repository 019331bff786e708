"""The steps in TensorFlow: through a cache that grows, or through one that has room for all tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from fairlap.bench_models.t5.spec import HEAD, Layers
from fairlap.bench_models.t5_generate.spec import PROMPT, TOKENS, Answering
from fairlap.bench_models.t5_generate.steps import LAST_FIRST, NEVER, OF_PROMPT, Steps
from fairlap.models.arrays import Arrays

Step = tuple[Any, Any, list[Any]]


class TensorFlow:
    of_prompt, last_first = OF_PROMPT, LAST_FIRST

    def rows(self, table: Any, places: Any) -> Any:
        return tf.gather(table, places)

    def linear(self, hidden: Any, weight: Any) -> Any:
        """All tokens of all items are rows of one matrix: a stack of matrices is one operation per item."""
        rows = tf.reshape(hidden, (-1, weight.shape[1]))
        found = tf.linalg.matmul(rows, weight, transpose_b=True)
        return tf.reshape(found, (*hidden.shape[:-1], weight.shape[0]))

    def norm(self, hidden: Any, weight: Any, epsilon: float) -> Any:
        return hidden * tf.math.rsqrt(tf.reduce_mean(tf.square(hidden), -1, keepdims=True) + epsilon) * weight

    def relu(self, hidden: Any) -> Any:
        return tf.nn.relu(hidden)

    def by_head(self, hidden: Any, heads: int) -> Any:
        batch, tokens, _ = hidden.shape
        return tf.transpose(tf.reshape(hidden, (batch, tokens, heads, -1)), (0, 2, 1, 3))

    def attended(self, query: Any, keys: Any, values: Any, nearness: Any) -> Any:
        scores = tf.linalg.matmul(query, keys, transpose_b=True)
        shares = tf.nn.softmax(scores if nearness is None else scores + nearness)
        batch, heads, tokens, size = query.shape
        return tf.reshape(tf.transpose(tf.linalg.matmul(shares, values), (0, 2, 1, 3)), (batch, tokens, heads * size))

    def turned(self, nearness: Any) -> Any:
        return tf.transpose(nearness, (2, 0, 1))[None]

    def joined(self, held: Any, new: Any) -> Any:
        return tf.concat([held, new], axis=2)

    def written(self, held: Any, new: Any, position: Any) -> Any:
        return tf.where(tf.range(TOKENS)[:, None] == position, new, held)

    def apart(self, position: Any) -> Any:
        return position - tf.range(TOKENS)

    def hidden_where(self, later: Any, nearness: Any) -> Any:
        return tf.where(later, NEVER, nearness)

    def length(self, held: Any) -> Any:
        return tf.shape(held)[2]

    def last(self, array: Any, count: Any) -> Any:
        return tf.constant(array)[len(array) - count :]


class Answer(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any, layers: Layers) -> None:
        super().__init__()
        self._layers, self._own = layers, 2 * layers.count
        self.variables_by_name = {name: tf.Variable(tf.cast(array, dtype)) for name, array in weights.items()}

    def first(self, prompt: Any) -> Step:
        steps = self._steps()
        of_prompt = steps.of_prompt(prompt)
        logits, *own = steps.step(tf.zeros_like(prompt[:, :1]), (), of_prompt)
        return tf.argmax(logits, axis=-1), logits, [*own, *of_prompt]

    def following(self, caches: Sequence[Any], tokens: Any) -> Step:
        logits, *own = self._steps().step(tokens, caches[: self._own], caches[self._own :])
        return tf.argmax(logits, axis=-1), logits, [*own, *caches[self._own :]]

    def first_of_fixed_shape(self, prompt: Any) -> Step:
        chosen, logits, caches = self.first(prompt)
        room = ((0, 0), (0, 0), (0, TOKENS - 1), (0, 0))
        return chosen, logits, [*(tf.pad(each, room) for each in caches[: self._own]), *caches[self._own :]]

    def following_of_fixed_shape(self, caches: Sequence[Any], tokens: Any, position: Any) -> Step:
        """``position`` counts the prompt too."""
        logits, *own = self._steps().step(tokens, caches[: self._own], caches[self._own :], position - PROMPT + 1)
        return tf.argmax(logits, axis=-1), logits, [*own, *caches[self._own :]]

    def growing_caches(self, batch: int, dtype: Any) -> list[Any]:
        """Describe what the caches look like, whatever the length of the decoder's own ones is."""
        lengths = [*[None] * self._own, *[PROMPT] * self._own]
        return [tf.TensorSpec((batch, self._layers.heads.queries, length, HEAD), dtype) for length in lengths]

    def _steps(self) -> Steps:
        """Read the table once: a variable that rows were gathered from copies itself whenever it is read again."""
        table = self.variables_by_name["shared.weight"].read_value()
        return Steps(TensorFlow(), self._layers, {**self.variables_by_name, "shared.weight": table})


class Implementation:
    def __init__(self, model: Answering) -> None:
        self._layers = model.layers

    def build(self, weights: Arrays, dtype: Any) -> Answer:
        return Answer(weights, dtype, self._layers)

    @staticmethod
    def canonical(_name: str, array: Any) -> Any:
        return array

"""BERT-base as a TensorFlow module."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from fairlap.bench_models.bert_base.spec import EPSILON, HEADS, LAYER_NAMES, TABLE_NAMES
from fairlap.bench_models.transformer.tensorflow_layers import attention, layer_norm, linear, variables
from fairlap.models.arrays import Arrays


class BertBase(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = variables(weights, dtype, TABLE_NAMES)

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        hidden = self._embed(inputs)
        seen = tf.cast(inputs["attention_mask"][:, tf.newaxis, tf.newaxis, :], hidden.dtype)
        unseen = (1.0 - seen) * hidden.dtype.min
        for name in LAYER_NAMES:
            hidden = self._apply_layer(name, hidden, unseen)
        return tf.tanh(linear(self.variables_by_name, "pooler.dense", hidden[:, 0])), hidden

    def _embed(self, inputs: dict[str, Any]) -> Any:
        weights = self.variables_by_name
        words = tf.gather(weights["embeddings.word_embeddings.weight"], inputs["input_ids"])
        places = weights["embeddings.position_embeddings.weight"][: words.shape[1]]
        types = tf.gather(weights["embeddings.token_type_embeddings.weight"], inputs["token_type_ids"])
        return layer_norm(weights, "embeddings.LayerNorm", words + places + types, EPSILON)

    def _apply_layer(self, name: str, hidden: Any, unseen: Any) -> Any:
        weights, own = self.variables_by_name, f"{name}.attention.self"
        query, key, value = (linear(weights, f"{own}.{each}", hidden) for each in ("query", "key", "value"))
        attended = attention(query, key, value, HEADS, unseen)
        hidden = self._added(f"{name}.attention.output", attended, hidden)
        activated = tf.nn.gelu(linear(weights, f"{name}.intermediate.dense", hidden), approximate=False)
        return self._added(f"{name}.output", activated, hidden)

    def _added(self, name: str, result: Any, hidden: Any) -> Any:
        weights = self.variables_by_name
        return layer_norm(weights, f"{name}.LayerNorm", hidden + linear(weights, f"{name}.dense", result), EPSILON)


def build(weights: Arrays, dtype: Any) -> BertBase:
    return BertBase(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return array if name in TABLE_NAMES else array.T

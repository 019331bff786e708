"""BERT-base as an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.bert_base.spec import EPSILON, HEADS, HIDDEN, LAYER_NAMES, LENGTH, with_sizes
from fairlap.bench_models.onnx_graph import Graph
from fairlap.models.arrays import Arrays
from onnx import TensorProto


class TransformerGraph(Graph):
    def linear(self, name: str, hidden: str) -> str:
        turned = self.add("Transpose", f"{name}.weight", perm=[1, 0])  # runtimes do so once, when they load it
        return self.add("Add", self.add("MatMul", hidden, turned), f"{name}.bias")

    def layer_norm(self, name: str, hidden: str, epsilon: float, gives: str = "") -> str:
        return self.add("LayerNormalization", hidden, f"{name}.weight", f"{name}.bias", gives=gives, epsilon=epsilon)

    def attention(self, query: str, key: str, value: str, heads: int, size: int, unseen: str) -> str:
        """``unseen`` is added to the scores: 0, or very low where a query shall not see a key."""
        query, value = (self._by_head(each, heads, size, [0, 2, 1, 3]) for each in (query, value))
        key = self._by_head(key, heads, size, [0, 2, 3, 1])
        scores = self.add("Div", self.add("MatMul", query, key), self.constant(size**0.5))
        shares = self.add("Softmax", self.add("Add", scores, unseen), axis=-1)
        attended = self.add("Transpose", self.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self.add("Reshape", attended, self.constant([0, 0, heads * size], np.int64))

    def _by_head(self, hidden: str, heads: int, size: int, perm: list[int]) -> str:
        split = self.add("Reshape", hidden, self.constant([0, 0, heads, size], np.int64))
        return self.add("Transpose", split, perm=perm)


def build(weights: Arrays, batch: int, tokens: int = LENGTH) -> Any:
    graph = TransformerGraph()
    hidden = _embed(graph, tokens)
    unseen = _unseen(graph)
    for name in LAYER_NAMES:
        hidden = _add_layer(graph, name, hidden, unseen)
    graph.add("Identity", hidden, gives="last_hidden_state")
    first = graph.add("Gather", hidden, graph.constant(0, np.int64), axis=1)
    graph.add("Tanh", graph.linear("pooler.dense", first), gives="pooled")
    return graph.model(with_sizes(tokens), weights, batch)


def _embed(graph: TransformerGraph, tokens: int) -> str:
    words = graph.add("Gather", "embeddings.word_embeddings.weight", "input_ids")
    bounds = (graph.constant([place], np.int64) for place in (0, tokens))
    places = graph.add("Slice", "embeddings.position_embeddings.weight", *bounds)
    types = graph.add("Gather", "embeddings.token_type_embeddings.weight", "token_type_ids")
    total = graph.add("Add", graph.add("Add", words, places), types)
    return graph.layer_norm("embeddings.LayerNorm", total, EPSILON)


def _unseen(graph: TransformerGraph) -> str:
    """0 for a token that may be seen, and the lowest number for one that may not."""
    mask = graph.add("Unsqueeze", "attention_mask", graph.constant([1, 2], np.int64))
    seen = graph.add("Cast", mask, to=TensorProto.FLOAT)
    hidden = graph.add("Sub", graph.constant(1.0), seen)
    return graph.add("Mul", hidden, graph.constant(np.finfo(np.float32).min))


def _add_layer(graph: TransformerGraph, name: str, hidden: str, unseen: str) -> str:
    query, key, value = (graph.linear(f"{name}.attention.self.{each}", hidden) for each in ("query", "key", "value"))
    attended = graph.attention(query, key, value, HEADS, HIDDEN // HEADS, unseen)
    hidden = _added(graph, f"{name}.attention.output", attended, hidden)
    activated = graph.add("Gelu", graph.linear(f"{name}.intermediate.dense", hidden))
    return _added(graph, f"{name}.output", activated, hidden)


def _added(graph: TransformerGraph, name: str, result: str, hidden: str) -> str:
    total = graph.add("Add", graph.linear(f"{name}.dense", result), hidden)
    return graph.layer_norm(f"{name}.LayerNorm", total, EPSILON)

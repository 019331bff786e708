"""Build the ONNX graph of a transformer."""

from __future__ import annotations

import numpy as np
from fairlap.bench_models.onnx_graph import Graph


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

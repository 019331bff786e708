"""Attention as a Gluon block.

A batched product broadcasts nothing, so the queries of all items meet a head's keys as the rows of one matrix.
``gemm2`` scales on the way, and where cores were scarce took a tenth of the time of ``batch_dot``.
"""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.attention.spec import HEADS, KEYS, QUERIES, SCALE, SIZE
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock


class Attention(HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.key = self.params.get("key", shape=(HEADS, KEYS, SIZE))
        self.value = self.params.get("value", shape=(HEADS, KEYS, SIZE))

    def hybrid_forward(self, F: Any, query: Any, key: Any, value: Any) -> tuple[Any]:
        rows = F.swapaxes(query, 0, 1).reshape((HEADS, -1, SIZE))
        scores = F.linalg.gemm2(rows, key, transpose_b=True, alpha=SCALE)
        attended = F.linalg.gemm2(F.softmax(scores, axis=-1), value)
        return (F.swapaxes(attended.reshape((HEADS, -1, QUERIES, SIZE)), 0, 1),)


def build(weights: Arrays) -> Any:
    return with_weights(Attention(), weights)

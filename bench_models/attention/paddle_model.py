"""Attention as a Paddle layer.

Paddle's own attention wants heads behind positions, and on a CPU does nothing but turn them and these same products.
"""

from __future__ import annotations

from typing import Any

import paddle
from fairlap.bench_models.attention.spec import HEADS, KEYS, SCALE, SIZE
from fairlap.bench_models.paddle_weights import with_weights
from fairlap.models.arrays import Arrays


class Attention(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.key = self.create_parameter((HEADS, KEYS, SIZE))
        self.value = self.create_parameter((HEADS, KEYS, SIZE))

    def forward(self, query: Any) -> tuple[Any]:
        scores = paddle.matmul(query * SCALE, self.key, transpose_y=True)
        return (paddle.matmul(paddle.nn.functional.softmax(scores, axis=-1), self.value),)


def build(weights: Arrays) -> Any:
    return with_weights(Attention(), weights)


def canonical(name: str, array: Any) -> Any:
    return array

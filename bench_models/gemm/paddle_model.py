"""The product as a Paddle layer."""

from __future__ import annotations

from typing import Any

import paddle
from fairlap.bench_models.gemm.spec import COLUMNS, INNER
from fairlap.bench_models.paddle_weights import with_weights
from fairlap.models.arrays import Arrays


class Product(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.right = self.create_parameter((INNER, COLUMNS))

    def forward(self, left: Any) -> tuple[Any]:
        return (paddle.matmul(left, self.right),)


def build(weights: Arrays) -> Any:
    return with_weights(Product(), weights)


def canonical(name: str, array: Any) -> Any:
    return array

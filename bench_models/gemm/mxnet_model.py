"""The product as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.gemm.spec import COLUMNS, INNER
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock


class Product(HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.right = self.params.get("right", shape=(INNER, COLUMNS))

    def hybrid_forward(self, F: Any, left: Any, right: Any) -> tuple[Any]:
        return (F.dot(left, right),)


def build(weights: Arrays) -> Any:
    return with_weights(Product(), weights)

"""Layer normalisation as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.layernorm.spec import EPSILON, FEATURES
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock, nn


class LayerNorm(HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(epsilon=EPSILON, in_channels=FEATURES)

    def hybrid_forward(self, F: Any, hidden: Any) -> tuple[Any]:
        return (self.norm(hidden),)


def build(weights: Arrays) -> Any:
    return with_weights(LayerNorm(), weights)

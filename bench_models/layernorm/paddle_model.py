"""Layer normalisation as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.layernorm.spec import EPSILON, FEATURES
from fairlap.bench_models.paddle_weights import with_weights
from fairlap.models.arrays import Arrays
from paddle import nn


class LayerNorm(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES, EPSILON)

    def forward(self, hidden: Any) -> tuple[Any]:
        return (self.norm(hidden),)


def build(weights: Arrays) -> Any:
    return with_weights(LayerNorm(), weights)


def canonical(name: str, array: Any) -> Any:
    return array

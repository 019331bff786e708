"""The perceptron as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.mlp.spec import CLASSES, EPSILON, HIDDEN, INPUTS
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock, nn


class Perceptron(HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(HIDDEN, in_units=INPUTS)
        self.norm = nn.LayerNorm(epsilon=EPSILON, in_channels=HIDDEN)
        self.second = nn.Dense(HIDDEN, in_units=HIDDEN)
        self.third = nn.Dense(CLASSES, in_units=HIDDEN)
        self.gelu = nn.GELU()

    def hybrid_forward(self, F: Any, image: Any) -> tuple[Any]:
        hidden = self.norm(self.gelu(self.first(image)))
        return (self.third(self.gelu(self.second(hidden))),)


def build(weights: Arrays) -> Any:
    return with_weights(Perceptron(), weights)

"""The perceptron as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.mlp.spec import CLASSES, EPSILON, HIDDEN, INPUTS
from fairlap.bench_models.paddle_weights import turned, with_weights
from fairlap.models.arrays import Arrays
from paddle import nn


class Perceptron(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(INPUTS, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.third = nn.Linear(HIDDEN, CLASSES)

    def forward(self, image: Any) -> tuple[Any]:
        hidden = self.norm(nn.functional.gelu(self.first(image)))
        return (self.third(nn.functional.gelu(self.second(hidden))),)


def build(weights: Arrays) -> Any:
    return with_weights(Perceptron(), {name: turned(array) for name, array in weights.items()})


def canonical(name: str, array: Any) -> Any:
    return turned(array)

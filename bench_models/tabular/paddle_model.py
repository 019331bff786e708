"""The perceptron as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.paddle_weights import turned, with_weights
from fairlap.bench_models.tabular.spec import LAYERS
from fairlap.models.arrays import Arrays
from paddle import nn


class Perceptron(nn.Layer):
    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.first, self.second, self.third = (
            nn.Linear(inward, outward) for outward, inward in (shapes[f"{name}.weight"] for name in LAYERS)
        )

    def forward(self, features: Any) -> tuple[Any]:
        hidden = nn.functional.relu(self.first(features))
        return (self.third(nn.functional.relu(self.second(hidden))),)


def build(weights: Arrays) -> Any:
    model = Perceptron({name: array.shape for name, array in weights.items()})
    return with_weights(model, {name: turned(array) for name, array in weights.items()})


def canonical(name: str, array: Any) -> Any:
    return turned(array)

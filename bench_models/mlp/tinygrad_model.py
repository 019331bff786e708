"""The perceptron in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.mlp.spec import CLASSES, EPSILON, HIDDEN, INPUTS
from fairlap.models.arrays import Arrays
from tinygrad import Tensor, nn


class Perceptron:
    def __init__(self) -> None:
        self.first = nn.Linear(INPUTS, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.third = nn.Linear(HIDDEN, CLASSES)

    def __call__(self, image: Any) -> tuple[Any]:
        hidden = self.norm(self.first(image).gelu("none"))  # "none" is the exact one, not tinygrad's default
        return (self.third(self.second(hidden).gelu("none")),)


def build(weights: Arrays) -> Perceptron:
    model = Perceptron()
    nn.state.load_state_dict(model, {name: Tensor(array) for name, array in weights.items()}, verbose=False)
    return model

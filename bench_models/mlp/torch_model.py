"""The perceptron as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.mlp.spec import CLASSES, EPSILON, HIDDEN, INPUTS
from fairlap.models.arrays import Arrays
from torch import nn


class Perceptron(nn.Module):
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
    model = Perceptron()
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
    return model.eval()

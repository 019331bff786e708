"""The perceptron as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.tabular.spec import LAYERS
from fairlap.models.arrays import Arrays
from torch import nn


class Perceptron(nn.Module):
    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.first, self.second, self.third = (
            nn.Linear(inward, outward) for outward, inward in (shapes[f"{name}.weight"] for name in LAYERS)
        )

    def forward(self, features: Any) -> tuple[Any]:
        hidden = torch.relu(self.first(features))
        return (self.third(torch.relu(self.second(hidden))),)


def build(weights: Arrays) -> Any:
    model = Perceptron({name: array.shape for name, array in weights.items()})
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
    return model.eval()

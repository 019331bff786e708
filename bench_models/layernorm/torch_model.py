"""Layer normalisation as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.layernorm.spec import EPSILON, FEATURES
from fairlap.models.arrays import Arrays
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES, EPSILON)

    def forward(self, hidden: Any) -> tuple[Any]:
        return (self.norm(hidden),)


def build(weights: Arrays) -> Any:
    model = LayerNorm()
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
    return model.eval()

"""Attention as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.models.arrays import Arrays
from torch import nn


class Attention(nn.Module):
    def __init__(self, key: Any, value: Any) -> None:
        super().__init__()
        self.key = nn.Parameter(key)
        self.value = nn.Parameter(value)

    def forward(self, query: Any) -> tuple[Any]:
        key, value = (memory.expand(len(query), -1, -1, -1) for memory in (self.key, self.value))
        return (nn.functional.scaled_dot_product_attention(query, key, value),)


def build(weights: Arrays) -> Any:
    return Attention(torch.tensor(weights["key"]), torch.tensor(weights["value"])).eval()

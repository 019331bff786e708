"""The product as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.models.arrays import Arrays
from torch import nn


class Product(nn.Module):
    def __init__(self, right: Any) -> None:
        super().__init__()
        self.right = nn.Parameter(right)

    def forward(self, left: Any) -> tuple[Any]:
        return (torch.matmul(left, self.right),)


def build(weights: Arrays) -> Any:
    return Product(torch.tensor(weights["right"])).eval()

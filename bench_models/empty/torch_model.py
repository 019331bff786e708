"""The sum as a PyTorch module."""

from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays
from torch import nn


class Empty(nn.Module):
    def forward(self, some: Any) -> tuple[Any]:
        return (some + 1,)


def build(weights: Arrays) -> Any:
    return Empty().eval()

"""Softmax as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.models.arrays import Arrays
from torch import nn


class Softmax(nn.Module):
    def forward(self, scores: Any) -> tuple[Any]:
        return (torch.softmax(scores, dim=-1),)


def build(weights: Arrays) -> Any:
    return Softmax().eval()

"""The convolution as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.conv2d.spec import PADDING
from fairlap.models.arrays import Arrays
from torch import nn


class Convolution(nn.Module):
    def __init__(self, kernel: Any) -> None:
        super().__init__()
        self.kernel = nn.Parameter(kernel)

    def forward(self, image: Any) -> tuple[Any]:
        return (nn.functional.conv2d(image, self.kernel, padding=PADDING),)


def build(weights: Arrays) -> Any:
    return Convolution(torch.tensor(weights["kernel"])).eval()

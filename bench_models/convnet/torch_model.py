"""The net as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.convnet.spec import STRIDES, channels_of, classes_of
from fairlap.models.arrays import Arrays
from torch import nn


class ConvNet(nn.Module):
    def __init__(self, channels: tuple[int, ...], classes: int) -> None:
        super().__init__()
        for number, stride in enumerate(STRIDES):
            layer = nn.Conv2d(channels[number], channels[number + 1], 3, stride, padding=1)
            self.add_module(f"conv{number}", layer)
        self.head = nn.Linear(channels[-1], classes)

    def forward(self, image: Any) -> tuple[Any]:
        hidden = image
        for number in range(len(STRIDES)):
            hidden = torch.relu(getattr(self, f"conv{number}")(hidden))
        return (self.head(hidden.mean(dim=(2, 3))),)


def build(weights: Arrays) -> Any:
    model = ConvNet(channels_of(weights), classes_of(weights))
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
    return model.eval()

"""A ResNet as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.convolution.torch_unit import with_weights
from fairlap.bench_models.convolution.units import Unit
from fairlap.bench_models.resnet.spec import CLASSES, STEM, Block, ResNet
from fairlap.models.arrays import Arrays
from torch import nn
from torch.nn import functional


def _convolution(unit: Unit) -> nn.Conv2d:
    return nn.Conv2d(unit.inward, unit.outward, unit.kernel, unit.stride, padding=unit.padding, bias=False)


class Residual(nn.Module):
    def __init__(self, block: Block) -> None:
        super().__init__()
        self.path = []
        for number, unit in enumerate(block.path, start=1):
            self.add_module(f"conv{number}", _convolution(unit))
            self.add_module(f"bn{number}", nn.BatchNorm2d(unit.outward))
            self.path.append((f"conv{number}", f"bn{number}"))
        self.downsample: nn.Module | None = None
        if block.shortcut:
            self.downsample = nn.Sequential(_convolution(block.shortcut), nn.BatchNorm2d(block.shortcut.outward))

    def forward(self, image: Any) -> Any:
        shortcut = image if self.downsample is None else self.downsample(image)
        hidden = image
        for place, (convolution, normalisation) in enumerate(self.path):
            if place:
                hidden = functional.relu(hidden, inplace=True)
            hidden = getattr(self, normalisation)(getattr(self, convolution)(hidden))
        hidden += shortcut
        return functional.relu(hidden, inplace=True)


class Network(nn.Module):
    def __init__(self, network: ResNet) -> None:
        super().__init__()
        self.conv1 = _convolution(STEM)
        self.bn1 = nn.BatchNorm2d(STEM.outward)
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        stages = (nn.Sequential(*map(Residual, stage)) for stage in network.stages)
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(network.features, CLASSES)

    def forward(self, image: Any) -> tuple[Any]:
        hidden = self.pool(functional.relu(self.bn1(self.conv1(image)), inplace=True))
        hidden = self.layer4(self.layer3(self.layer2(self.layer1(hidden))))
        features = torch.flatten(functional.adaptive_avg_pool2d(hidden, 1), 1)
        return (self.fc(features),)


class Implementation:
    MEMORY_FORMAT = "channels_last"

    def __init__(self, network: ResNet) -> None:
        self._network = network

    def build(self, weights: Arrays) -> Any:
        return with_weights(Network(self._network), weights)

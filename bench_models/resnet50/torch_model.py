"""ResNet-50 as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.convolution.torch_unit import with_weights
from fairlap.bench_models.resnet50.spec import CLASSES, EXPANSION, FEATURES, STAGES
from fairlap.models.arrays import Arrays
from torch import nn
from torch.nn import functional

MEMORY_FORMAT = "channels_last"


class Bottleneck(nn.Module):
    def __init__(self, inward: int, width: int, stride: int) -> None:
        super().__init__()
        outward = EXPANSION * width
        self.conv1 = nn.Conv2d(inward, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outward, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outward)
        self.downsample: nn.Module | None = None
        if stride != 1 or inward != outward:
            convolution = nn.Conv2d(inward, outward, 1, stride, bias=False)
            self.downsample = nn.Sequential(convolution, nn.BatchNorm2d(outward))

    def forward(self, image: Any) -> Any:
        shortcut = image if self.downsample is None else self.downsample(image)
        hidden = functional.relu(self.bn1(self.conv1(image)), inplace=True)
        hidden = functional.relu(self.bn2(self.conv2(hidden)), inplace=True)
        hidden = self.bn3(self.conv3(hidden))
        hidden += shortcut
        return functional.relu(hidden, inplace=True)


def _stage(inward: int, width: int, count: int, stride: int) -> nn.Module:
    others = (Bottleneck(EXPANSION * width, width, 1) for _ in range(count - 1))
    return nn.Sequential(Bottleneck(inward, width, stride), *others)


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        inputs = (64, *(EXPANSION * width for width, _, _ in STAGES))
        stages = (_stage(inward, *sizes) for inward, sizes in zip(inputs, STAGES, strict=False))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(FEATURES, CLASSES)

    def forward(self, image: Any) -> tuple[Any]:
        hidden = self.pool(functional.relu(self.bn1(self.conv1(image)), inplace=True))
        hidden = self.layer4(self.layer3(self.layer2(self.layer1(hidden))))
        features = torch.flatten(functional.adaptive_avg_pool2d(hidden, 1), 1)
        return (self.fc(features),)


def build(weights: Arrays) -> Any:
    return with_weights(ResNet50(), weights)

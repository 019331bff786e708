"""MobileNetV2 as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.convolution.torch_unit import with_weights
from fairlap.bench_models.mobilenet_v2.spec import CLASSES, FEATURES, STAGES
from fairlap.models.arrays import Arrays
from torch import nn
from torch.nn import functional

MEMORY_FORMAT = "channels_last"


def convolution_with_relu6(inward: int, outward: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inward, outward, kernel, stride, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outward),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    def __init__(self, inward: int, outward: int, expansion: int, stride: int) -> None:
        super().__init__()
        hidden = inward * expansion
        self.residual = stride == 1 and inward == outward
        layers = [convolution_with_relu6(inward, hidden, 1)] if expansion != 1 else []
        layers += [
            convolution_with_relu6(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, outward, 1, bias=False),
            nn.BatchNorm2d(outward),
        ]
        self.conv = nn.Sequential(*layers)

    def forward(self, image: Any) -> Any:
        return image + self.conv(image) if self.residual else self.conv(image)


class MobileNetV2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        inward = 32
        layers = [convolution_with_relu6(3, inward, 3, stride=2)]
        for expansion, outward, count, stride in STAGES:
            for number in range(count):
                layers.append(InvertedResidual(inward, outward, expansion, stride if number == 0 else 1))
                inward = outward
        self.features = nn.Sequential(*layers, convolution_with_relu6(inward, FEATURES, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(FEATURES, CLASSES))

    def forward(self, image: Any) -> tuple[Any]:
        features = torch.flatten(functional.adaptive_avg_pool2d(self.features(image), 1), 1)
        return (self.classifier(features),)


def build(weights: Arrays) -> Any:
    return with_weights(MobileNetV2(), weights)

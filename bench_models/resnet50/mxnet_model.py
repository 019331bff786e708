"""ResNet-50 as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.mxnet_unit import convolution, normalisation, sequence
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.bench_models.resnet50.spec import CLASSES, EXPANSION, FEATURES, STAGES
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock, nn


class Bottleneck(HybridBlock):
    def __init__(self, inward: int, width: int, stride: int) -> None:
        super().__init__()
        outward = EXPANSION * width
        self.conv1 = convolution(inward, width, 1)
        self.bn1 = normalisation(width)
        self.conv2 = convolution(width, width, 3, stride)
        self.bn2 = normalisation(width)
        self.conv3 = convolution(width, outward, 1)
        self.bn3 = normalisation(outward)
        self.downsample: Any = None
        if stride != 1 or inward != outward:
            self.downsample = sequence(convolution(inward, outward, 1, stride), normalisation(outward))

    def hybrid_forward(self, F: Any, image: Any) -> Any:
        shortcut = image if self.downsample is None else self.downsample(image)
        hidden = F.relu(self.bn1(self.conv1(image)))
        hidden = F.relu(self.bn2(self.conv2(hidden)))
        return F.relu(self.bn3(self.conv3(hidden)) + shortcut)


class ResNet50(HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = convolution(3, 64, 7, 2)
        self.bn1 = normalisation(64)
        self.pool = nn.MaxPool2D(3, 2, padding=1)
        inputs = (64, *(EXPANSION * width for width, _, _ in STAGES))
        stages = (_stage(inward, *sizes) for inward, sizes in zip(inputs, STAGES, strict=False))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.average = nn.GlobalAvgPool2D()
        self.fc = nn.Dense(CLASSES, in_units=FEATURES)

    def hybrid_forward(self, F: Any, image: Any) -> tuple[Any]:
        hidden = self.pool(F.relu(self.bn1(self.conv1(image))))
        hidden = self.layer4(self.layer3(self.layer2(self.layer1(hidden))))
        return (self.fc(self.average(hidden)),)


def _stage(inward: int, width: int, count: int, stride: int) -> Any:
    others = (Bottleneck(EXPANSION * width, width, 1) for _ in range(count - 1))
    return sequence(Bottleneck(inward, width, stride), *others)


def build(weights: Arrays) -> Any:
    return with_weights(ResNet50(), weights)

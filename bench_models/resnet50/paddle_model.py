"""ResNet-50 as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.paddle_weights import turned, with_weights
from fairlap.bench_models.resnet50.spec import CLASSES, EXPANSION, FEATURES, STAGES
from fairlap.models.arrays import Arrays
from paddle import nn
from paddle.nn import functional


class Bottleneck(nn.Layer):
    def __init__(self, inward: int, width: int, stride: int) -> None:
        super().__init__()
        outward = EXPANSION * width
        self.conv1 = nn.Conv2D(inward, width, 1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(width)
        self.conv2 = nn.Conv2D(width, width, 3, stride, padding=1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(width)
        self.conv3 = nn.Conv2D(width, outward, 1, bias_attr=False)
        self.bn3 = nn.BatchNorm2D(outward)
        self.downsample: Any = None
        if stride != 1 or inward != outward:
            convolution = nn.Conv2D(inward, outward, 1, stride, bias_attr=False)
            self.downsample = nn.Sequential(convolution, nn.BatchNorm2D(outward))

    def forward(self, image: Any) -> Any:
        shortcut = image if self.downsample is None else self.downsample(image)
        hidden = functional.relu(self.bn1(self.conv1(image)))
        hidden = functional.relu(self.bn2(self.conv2(hidden)))
        return functional.relu(self.bn3(self.conv3(hidden)) + shortcut)


def _stage(inward: int, width: int, count: int, stride: int) -> Any:
    others = (Bottleneck(EXPANSION * width, width, 1) for _ in range(count - 1))
    return nn.Sequential(Bottleneck(inward, width, stride), *others)


class ResNet50(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2D(3, 64, 7, 2, padding=3, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(64)
        self.pool = nn.MaxPool2D(3, 2, padding=1)
        inputs = (64, *(EXPANSION * width for width, _, _ in STAGES))
        stages = (_stage(inward, *sizes) for inward, sizes in zip(inputs, STAGES, strict=False))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(FEATURES, CLASSES)

    def forward(self, image: Any) -> tuple[Any]:
        hidden = self.pool(functional.relu(self.bn1(self.conv1(image))))
        hidden = self.layer4(self.layer3(self.layer2(self.layer1(hidden))))
        return (self.fc(functional.adaptive_avg_pool2d(hidden, 1).flatten(1)),)


def build(weights: Arrays) -> Any:
    return with_weights(ResNet50(), {name: turned(array) for name, array in weights.items()})


def canonical(name: str, array: Any) -> Any:
    return turned(array)

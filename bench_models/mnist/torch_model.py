"""The net as a PyTorch module."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.torch_unit import with_weights
from fairlap.bench_models.mnist.spec import CLASSES, FEATURES, STAGES
from fairlap.models.arrays import Arrays
from torch import nn
from torch.nn import functional

MEMORY_FORMAT = "channels_last"


class BasicBlock(nn.Module):
    def __init__(self, inward: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inward, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Module | None = None
        if stride != 1 or inward != width:
            convolution = nn.Conv2d(inward, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(convolution, nn.BatchNorm2d(width))

    def forward(self, image: Any) -> Any:
        shortcut = image if self.downsample is None else self.downsample(image)
        hidden = functional.relu(self.bn1(self.conv1(image)), inplace=True)
        hidden = self.bn2(self.conv2(hidden))
        hidden += shortcut
        return functional.relu(hidden, inplace=True)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        inward = STAGES[0][0]
        self.conv1 = nn.Conv2d(1, inward, 3, 2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(inward)
        for number, (width, stride) in enumerate(STAGES, start=1):
            self.add_module(f"layer{number}", BasicBlock(inward, width, stride))
            inward = width
        self.fc = nn.Linear(FEATURES, CLASSES)

    def forward(self, image: Any) -> tuple[Any]:
        hidden = functional.relu(self.bn1(self.conv1(image)), inplace=True)
        for number in range(1, 1 + len(STAGES)):
            hidden = getattr(self, f"layer{number}")(hidden)
        return (self.fc(hidden.mean(dim=(2, 3))),)


def build(weights: Arrays) -> Any:
    return with_weights(ResNet(), weights)

"""A ResNet as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.mxnet_unit import convolution, normalisation, sequence
from fairlap.bench_models.convolution.units import Unit
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.bench_models.resnet.spec import CLASSES, STEM, Block, ResNet
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock, nn


def _convolution(unit: Unit) -> Any:
    return convolution(unit.inward, unit.outward, unit.kernel, unit.stride)


class Residual(HybridBlock):
    def __init__(self, block: Block) -> None:
        super().__init__()
        for number, unit in enumerate(block.path, start=1):
            setattr(self, f"conv{number}", _convolution(unit))
            setattr(self, f"bn{number}", normalisation(unit.outward))
        self.convolutions = len(block.path)
        self.downsample: Any = None
        if block.shortcut:
            self.downsample = sequence(_convolution(block.shortcut), normalisation(block.shortcut.outward))

    def hybrid_forward(self, F: Any, image: Any) -> Any:
        hidden = image
        for number in range(1, self.convolutions + 1):
            hidden = F.relu(hidden) if number > 1 else hidden
            hidden = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(hidden))
        shortcut = image if self.downsample is None else self.downsample(image)
        return F.relu(hidden + shortcut)


class Network(HybridBlock):
    def __init__(self, network: ResNet) -> None:
        super().__init__()
        self.conv1 = _convolution(STEM)
        self.bn1 = normalisation(STEM.outward)
        self.pool = nn.MaxPool2D(3, 2, padding=1)
        stages = (sequence(*map(Residual, stage)) for stage in network.stages)
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.average = nn.GlobalAvgPool2D()
        self.fc = nn.Dense(CLASSES, in_units=network.features)

    def hybrid_forward(self, F: Any, image: Any) -> tuple[Any]:
        hidden = self.pool(F.relu(self.bn1(self.conv1(image))))
        hidden = self.layer4(self.layer3(self.layer2(self.layer1(hidden))))
        return (self.fc(self.average(hidden)),)


class Implementation:
    def __init__(self, network: ResNet) -> None:
        self._network = network

    def build(self, weights: Arrays) -> Any:
        return with_weights(Network(self._network), weights)

"""The net as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convnet.spec import STRIDES, channels_of, classes_of
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock, nn


class ConvNet(HybridBlock):
    def __init__(self, channels: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.conv0, self.conv1, self.conv2 = (
            nn.Conv2D(channels[number + 1], 3, stride, padding=1, in_channels=channels[number])
            for number, stride in enumerate(STRIDES)
        )
        self.pool = nn.GlobalAvgPool2D()
        self.head = nn.Dense(classes, in_units=channels[-1])

    def hybrid_forward(self, F: Any, image: Any) -> tuple[Any]:
        hidden = F.relu(self.conv0(image))
        hidden = F.relu(self.conv1(hidden))
        hidden = F.relu(self.conv2(hidden))
        return (self.head(self.pool(hidden)),)


def build(weights: Arrays) -> Any:
    return with_weights(ConvNet(channels_of(weights), classes_of(weights)), weights)

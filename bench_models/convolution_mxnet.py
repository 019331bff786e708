"""What image networks in Gluon are put together from."""

from __future__ import annotations

from typing import Any

from mxnet.gluon import nn


def convolution(inward: int, outward: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    return nn.Conv2D(outward, kernel, stride, kernel // 2, groups=groups, use_bias=False, in_channels=inward)


def sequence(*blocks: Any) -> Any:
    made = nn.HybridSequential()
    made.add(*blocks)
    return made

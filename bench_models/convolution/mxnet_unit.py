"""The convolution with its normalisation in Gluon."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.units import EPSILON
from mxnet.gluon import nn


def convolution(inward: int, outward: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    return nn.Conv2D(outward, kernel, stride, kernel // 2, groups=groups, use_bias=False, in_channels=inward)


def normalisation(features: int) -> Any:
    """By the running statistics in training mode too: the gradients of a max pooling are right in no other mode."""
    return nn.BatchNorm(epsilon=EPSILON, use_global_stats=True, in_channels=features)


def sequence(*blocks: Any) -> Any:
    made = nn.HybridSequential()
    made.add(*blocks)
    return made

"""The convolution as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.conv2d.spec import INWARD, KERNEL, OUTWARD, PADDING
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock


class Convolution(HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = self.params.get("kernel", shape=(OUTWARD, INWARD, KERNEL, KERNEL))

    def hybrid_forward(self, F: Any, image: Any, kernel: Any) -> tuple[Any]:
        size, edge = (KERNEL, KERNEL), (PADDING, PADDING)
        return (F.Convolution(image, kernel, kernel=size, pad=edge, num_filter=OUTWARD, no_bias=True),)


def build(weights: Arrays) -> Any:
    return with_weights(Convolution(), weights)

"""The sum as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock


class Empty(HybridBlock):
    def hybrid_forward(self, F: Any, some: Any) -> tuple[Any]:
        return (some + 1,)


def build(weights: Arrays) -> Any:
    return with_weights(Empty(), weights)

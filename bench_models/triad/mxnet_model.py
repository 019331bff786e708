"""The triad as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.bench_models.triad.spec import SCALE
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock


class Triad(HybridBlock):
    def hybrid_forward(self, F: Any, left: Any, right: Any) -> tuple[Any]:
        return (left + SCALE * right,)


def build(weights: Arrays) -> Any:
    return with_weights(Triad(), weights)

"""Softmax as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock


class Softmax(HybridBlock):
    def hybrid_forward(self, F: Any, scores: Any) -> tuple[Any]:
        return (F.softmax(scores, axis=-1),)


def build(weights: Arrays) -> Any:
    return with_weights(Softmax(), weights)

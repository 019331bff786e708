"""Softmax as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.workloads.workload import Arrays
from mxnet.gluon import HybridBlock

from bench_models.weights_mxnet import with_weights


class Softmax(HybridBlock):
    def hybrid_forward(self, F: Any, scores: Any) -> tuple[Any]:
        return (F.softmax(scores, axis=-1),)


def build(weights: Arrays) -> Any:
    return with_weights(Softmax(), weights)

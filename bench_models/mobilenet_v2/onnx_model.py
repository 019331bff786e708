"""MobileNetV2 as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.onnx_unit import ImageGraph
from fairlap.bench_models.convolution.units import Unit
from fairlap.bench_models.mobilenet_v2.spec import BLOCKS, IMAGE, LAST, STEM, with_sizes
from fairlap.models.arrays import Arrays


def build(weights: Arrays, batch: int, image: int = IMAGE) -> Any:
    graph = ImageGraph()
    zero, six = graph.constant(0.0), graph.constant(6.0)

    def with_relu6(unit: Unit, image: str) -> str:
        return graph.add("Clip", graph.unit(unit, image), zero, six)

    hidden = with_relu6(STEM, "image")
    for block in BLOCKS:
        expanded = with_relu6(block.expand, hidden) if block.expand else hidden
        projected = graph.unit(block.project, with_relu6(block.depthwise, expanded))
        hidden = graph.add("Add", projected, hidden) if block.residual else projected
    graph.classify(with_relu6(LAST, hidden), "classifier.1", "logits")
    return graph.model(with_sizes(image), weights, batch)

"""ResNet-50 as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.onnx_unit import ImageGraph
from fairlap.bench_models.resnet50.spec import BLOCKS, IMAGE, STEM, Block, with_sizes
from fairlap.models.arrays import Arrays


def build(weights: Arrays, batch: int, image: int = IMAGE) -> Any:
    graph = ImageGraph()
    hidden = graph.add("Relu", graph.unit(STEM, "image"))
    hidden = graph.add("MaxPool", hidden, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for block in BLOCKS:
        hidden = _add_block(graph, block, hidden)
    graph.classify(hidden, "fc", "logits")
    return graph.model(with_sizes(image), weights, batch)


def _add_block(graph: ImageGraph, block: Block, image: str) -> str:
    hidden = graph.add("Relu", graph.unit(block.narrow, image))
    hidden = graph.add("Relu", graph.unit(block.spatial, hidden))
    hidden = graph.unit(block.widen, hidden)
    shortcut = graph.unit(block.shortcut, image) if block.shortcut else image
    return graph.add("Relu", graph.add("Add", hidden, shortcut))

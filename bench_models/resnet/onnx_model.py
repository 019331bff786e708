"""A ResNet as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.onnx_unit import ImageGraph
from fairlap.bench_models.resnet.spec import IMAGE, STEM, Block, ResNet
from fairlap.models.arrays import Arrays


class Implementation:
    def __init__(self, network: ResNet) -> None:
        self._network = network

    def build(self, weights: Arrays, batch: int, image: int = IMAGE) -> Any:
        graph = ImageGraph()
        hidden = graph.add("Relu", graph.unit(STEM, "image"))
        hidden = graph.add("MaxPool", hidden, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        for block in self._network.blocks:
            hidden = _add_block(graph, block, hidden)
        graph.classify(hidden, "fc", "logits")
        return graph.model(self._network.with_sizes(image), weights, batch)


def _add_block(graph: ImageGraph, block: Block, image: str) -> str:
    *before, last = block.path
    hidden = image
    for unit in before:
        hidden = graph.add("Relu", graph.unit(unit, hidden))
    hidden = graph.unit(last, hidden)
    shortcut = graph.unit(block.shortcut, image) if block.shortcut else image
    return graph.add("Relu", graph.add("Add", hidden, shortcut))

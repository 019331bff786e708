"""The net as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.onnx_unit import ImageGraph
from fairlap.bench_models.mnist.spec import BLOCKS, SPEC, STEM, Block
from fairlap.models.arrays import Arrays


def build(weights: Arrays, batch: int) -> Any:
    graph = ImageGraph()
    hidden = graph.add("Relu", graph.unit(STEM, "image"))
    for block in BLOCKS:
        hidden = _add_block(graph, block, hidden)
    graph.classify(hidden, "fc", "logits")
    return graph.model(SPEC, weights, batch)


def _add_block(graph: ImageGraph, block: Block, image: str) -> str:
    hidden = graph.add("Relu", graph.unit(block.first, image))
    hidden = graph.unit(block.second, hidden)
    shortcut = graph.unit(block.shortcut, image) if block.shortcut else image
    return graph.add("Relu", graph.add("Add", hidden, shortcut))

"""A ResNet as a TensorFlow module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from fairlap.bench_models.convolution.tensorflow_unit import apply_unit, to_spec_layout, variables
from fairlap.bench_models.resnet.spec import STEM, Block, ResNet
from fairlap.models.arrays import Arrays


class Network(tf.Module):
    def __init__(self, blocks: Sequence[Block], weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.blocks = blocks
        self.variables_by_name = variables(weights, dtype)

    def __call__(self, inputs: dict[str, Any], training: bool = False) -> tuple[Any]:
        weights = self.variables_by_name
        hidden = tf.transpose(inputs["image"], (0, 2, 3, 1))
        hidden = tf.nn.relu(apply_unit(weights, STEM, hidden, training))
        # After a ReLU a padding of zeros is never larger than what it stands beside.
        hidden = tf.nn.max_pool2d(tf.pad(hidden, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID")
        for block in self.blocks:
            hidden = self._apply_block(block, hidden, training)
        features = tf.reduce_mean(hidden, axis=(1, 2))
        return (tf.nn.bias_add(features @ weights["fc.weight"], weights["fc.bias"]),)

    def _apply_block(self, block: Block, image: Any, training: bool) -> Any:
        weights = self.variables_by_name
        *before, last = block.path
        hidden = image
        for unit in before:
            hidden = tf.nn.relu(apply_unit(weights, unit, hidden, training))
        hidden = apply_unit(weights, last, hidden, training)
        return tf.nn.relu(hidden + (apply_unit(weights, block.shortcut, image, training) if block.shortcut else image))


class Implementation:
    def __init__(self, network: ResNet) -> None:
        self._blocks = network.blocks

    def build(self, weights: Arrays, dtype: Any) -> Network:
        return Network(self._blocks, weights, dtype)

    def canonical(self, name: str, array: Any) -> Any:
        return to_spec_layout(array)

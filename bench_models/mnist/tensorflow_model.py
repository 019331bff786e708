"""The net as a TensorFlow module, NHWC inside."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from fairlap.bench_models.convolution.tensorflow_unit import apply_unit, to_spec_layout, variables
from fairlap.bench_models.mnist.spec import BLOCKS, STEM, Block
from fairlap.models.arrays import Arrays


class ResNet(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = variables(weights, dtype, dense=(f"{STEM.convolution}.weight",))

    def __call__(self, inputs: dict[str, Any], training: bool = False) -> tuple[Any]:
        weights = self.variables_by_name
        hidden = tf.transpose(inputs["image"], (0, 2, 3, 1))
        hidden = tf.nn.relu(apply_unit(weights, STEM, hidden, training))
        for block in BLOCKS:
            hidden = self._apply_block(block, hidden, training)
        features = tf.reduce_mean(hidden, axis=(1, 2))
        return (tf.nn.bias_add(features @ weights["fc.weight"], weights["fc.bias"]),)

    def _apply_block(self, block: Block, image: Any, training: bool) -> Any:
        weights = self.variables_by_name
        hidden = tf.nn.relu(apply_unit(weights, block.first, image, training))
        hidden = apply_unit(weights, block.second, hidden, training)
        return tf.nn.relu(hidden + (apply_unit(weights, block.shortcut, image, training) if block.shortcut else image))


def build(weights: Arrays, dtype: Any) -> ResNet:
    return ResNet(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return to_spec_layout(array)

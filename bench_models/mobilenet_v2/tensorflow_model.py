"""MobileNetV2 as a TensorFlow module."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from fairlap.bench_models.convolution.tensorflow_unit import apply_unit, to_spec_layout, variables
from fairlap.bench_models.mobilenet_v2.spec import BLOCKS, LAST, STEM, Block
from fairlap.models.arrays import Arrays


class MobileNetV2(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = variables(weights, dtype)

    def __call__(self, inputs: dict[str, Any], training: bool = False) -> tuple[Any]:
        weights = self.variables_by_name
        hidden = tf.transpose(inputs["image"], (0, 2, 3, 1))
        hidden = tf.nn.relu6(apply_unit(weights, STEM, hidden, training))
        for block in BLOCKS:
            hidden = self._apply_block(block, hidden, training)
        features = tf.reduce_mean(tf.nn.relu6(apply_unit(weights, LAST, hidden, training)), axis=(1, 2))
        return (tf.nn.bias_add(features @ weights["classifier.1.weight"], weights["classifier.1.bias"]),)

    def _apply_block(self, block: Block, image: Any, training: bool) -> Any:
        weights = self.variables_by_name
        hidden = tf.nn.relu6(apply_unit(weights, block.expand, image, training)) if block.expand else image
        hidden = tf.nn.relu6(apply_unit(weights, block.depthwise, hidden, training))
        hidden = apply_unit(weights, block.project, hidden, training)
        return hidden + image if block.residual else hidden


def build(weights: Arrays, dtype: Any) -> MobileNetV2:
    return MobileNetV2(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return to_spec_layout(array)

"""MobileNetV2 as a pure function."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from fairlap.bench_models.convolution.jax_unit import apply_unit, to_jax_layout, to_spec_layout
from fairlap.bench_models.mobilenet_v2.spec import BLOCKS, LAST, STEM, Block
from fairlap.models.arrays import Arrays
from jax.nn import relu6


def params(weights: Arrays) -> dict[str, Any]:
    return to_jax_layout(weights)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return to_spec_layout(params)


def forward(params: dict[str, Any], inputs: dict[str, Any], statistics: dict[str, Any] | None = None) -> tuple[Any]:
    hidden = relu6(apply_unit(params, STEM, jnp.transpose(inputs["image"], (0, 2, 3, 1))))
    for block in BLOCKS:
        hidden = _apply_block(params, block, hidden, statistics)
    features = relu6(apply_unit(params, LAST, hidden, statistics)).mean(axis=(1, 2))
    return (features @ params["classifier.1.weight"] + params["classifier.1.bias"],)


def _apply_block(params: dict[str, Any], block: Block, image: Any, statistics: dict[str, Any] | None) -> Any:
    hidden = relu6(apply_unit(params, block.expand, image, statistics)) if block.expand else image
    hidden = relu6(apply_unit(params, block.depthwise, hidden, statistics))
    hidden = apply_unit(params, block.project, hidden, statistics)
    return hidden + image if block.residual else hidden

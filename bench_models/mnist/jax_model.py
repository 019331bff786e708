"""The net as a pure function."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from fairlap.bench_models.convolution.jax_unit import apply_unit, to_jax_layout, to_spec_layout
from fairlap.bench_models.mnist.spec import BLOCKS, STEM, Block
from fairlap.models.arrays import Arrays
from jax import nn


def params(weights: Arrays) -> dict[str, Any]:
    return to_jax_layout(weights)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return to_spec_layout(params)


def forward(params: dict[str, Any], inputs: dict[str, Any], statistics: dict[str, Any] | None = None) -> tuple[Any]:
    hidden = jnp.transpose(inputs["image"], (0, 2, 3, 1))
    hidden = nn.relu(apply_unit(params, STEM, hidden, statistics))
    for block in BLOCKS:
        hidden = _apply_block(params, block, hidden, statistics)
    return (hidden.mean(axis=(1, 2)) @ params["fc.weight"] + params["fc.bias"],)


def _apply_block(params: dict[str, Any], block: Block, image: Any, statistics: dict[str, Any] | None) -> Any:
    hidden = nn.relu(apply_unit(params, block.first, image, statistics))
    hidden = apply_unit(params, block.second, hidden, statistics)
    return nn.relu(hidden + (apply_unit(params, block.shortcut, image, statistics) if block.shortcut else image))

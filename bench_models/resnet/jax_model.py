"""A ResNet as a pure function."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from fairlap.bench_models.convolution.jax_unit import apply_unit, to_jax_layout, to_spec_layout
from fairlap.bench_models.resnet.spec import STEM, Block, ResNet
from fairlap.models.arrays import Arrays
from jax import lax, nn


class Implementation:
    def __init__(self, network: ResNet) -> None:
        self._blocks = network.blocks

    def params(self, weights: Arrays) -> dict[str, Any]:
        return to_jax_layout(weights)

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        return to_spec_layout(params)

    def forward(
        self, params: dict[str, Any], inputs: dict[str, Any], statistics: dict[str, Any] | None = None
    ) -> tuple[Any]:
        hidden = jnp.transpose(inputs["image"], (0, 2, 3, 1))
        hidden = nn.relu(apply_unit(params, STEM, hidden, statistics))
        padding = ((0, 0), (1, 1), (1, 1), (0, 0))
        hidden = lax.reduce_window(hidden, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), padding)
        for block in self._blocks:
            hidden = _apply_block(params, block, hidden, statistics)
        return (hidden.mean(axis=(1, 2)) @ params["fc.weight"] + params["fc.bias"],)


def _apply_block(params: dict[str, Any], block: Block, image: Any, statistics: dict[str, Any] | None) -> Any:
    *before, last = block.path
    hidden = image
    for unit in before:
        hidden = nn.relu(apply_unit(params, unit, hidden, statistics))
    hidden = apply_unit(params, last, hidden, statistics)
    return nn.relu(hidden + (apply_unit(params, block.shortcut, image, statistics) if block.shortcut else image))

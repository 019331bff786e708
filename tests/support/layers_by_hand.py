"""The layers of networks by hand: in plain PyTorch, in float64, on weights by the names that the models have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

Tensors = Mapping[str, Any]


class ByHand:
    """Layers that find their weights by name."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self.weights = {name: torch.tensor(array, dtype=torch.float64) for name, array in weights.items()}

    def part(self, name: str) -> Any:
        return self.weights.get(name)

    def linear(self, name: str, value: Any) -> Any:
        return functional.linear(value, self.part(f"{name}.weight"), self.part(f"{name}.bias"))

    def layer_norm(self, name: str, value: Any, epsilon: float = 1e-5) -> Any:
        parts = self.part(f"{name}.weight"), self.part(f"{name}.bias")
        return functional.layer_norm(value, value.shape[-1:], *parts, epsilon)

    def convolution(self, name: str, image: Any, **how: Any) -> Any:
        return functional.conv2d(image, self.part(f"{name}.weight"), self.part(f"{name}.bias"), **how)

    def attention(self, name: str, hidden: Any, heads: int, seen: Any = None, causal: bool = False) -> Any:
        def split(part: str, value: Any) -> Any:
            return self.linear(f"{name}.{part}", value).unflatten(-1, (heads, -1)).transpose(-2, -3)

        seen = hidden if seen is None else seen
        found = functional.scaled_dot_product_attention(
            split("query", hidden), split("key", seen), split("value", seen), is_causal=causal
        )
        return self.linear(f"{name}.output", found.transpose(-2, -3).flatten(-2))

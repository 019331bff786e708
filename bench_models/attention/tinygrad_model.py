"""Attention in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays
from tinygrad import Tensor


class Attention:
    def __init__(self, key: Any, value: Any) -> None:
        self.key = key
        self.value = value

    def __call__(self, query: Any) -> tuple[Any]:
        return (query.scaled_dot_product_attention(self.key, self.value),)


def build(weights: Arrays) -> Attention:
    return Attention(Tensor(weights["key"]).realize(), Tensor(weights["value"]).realize())

"""The product in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays
from tinygrad import Tensor


class Product:
    def __init__(self, right: Any) -> None:
        self.right = right

    def __call__(self, left: Any) -> tuple[Any]:
        return (left @ self.right,)


def build(weights: Arrays) -> Product:
    return Product(Tensor(weights["right"]).realize())

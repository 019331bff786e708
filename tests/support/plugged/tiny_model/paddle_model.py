"""The multiplication in Paddle, or in what stands in for it."""

from __future__ import annotations

from typing import Any

import paddle
from fairlap.models.arrays import Arrays


class Multiplication:
    def __init__(self, weights: Arrays) -> None:
        self.parameters_by_name = {"w": paddle.to_tensor(weights["w"])}

    def __call__(self, x: Any) -> tuple[Any]:
        return (paddle.matmul(x, self.parameters_by_name["w"]),)


def build(weights: Arrays) -> Multiplication:
    return Multiplication(weights)


def canonical(_name: str, array: Any) -> Any:
    return array

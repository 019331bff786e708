"""Softmax in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays


class Softmax:
    def __call__(self, scores: Any) -> tuple[Any]:
        return (scores.softmax(-1),)


def build(weights: Arrays) -> Softmax:
    return Softmax()

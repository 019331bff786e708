"""The sum in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays


class Empty:
    def __call__(self, some: Any) -> tuple[Any]:
        return (some + 1,)


def build(weights: Arrays) -> Empty:
    return Empty()

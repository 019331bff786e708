"""What a trick may change: the weights that are used, the call that is bound, and the outputs that are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.models.arrays import Arrays

Call = Callable[[], Any]
Forward = Callable[[Arrays], dict[str, Any]]


class Honest:
    def weights(self, weights: dict[str, Any]) -> dict[str, Any]:
        return weights

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        return lambda: forward(inputs)

    def outputs(self, result: Any) -> dict[str, Any]:
        return result  # type: ignore[no-any-return]

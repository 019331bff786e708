"""The triad as a pure function; XLA fuses it into one loop."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.triad.spec import SCALE
from fairlap.models.arrays import Arrays


def params(weights: Arrays) -> dict[str, Any]:
    return dict(weights)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return dict(params)


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
    return (inputs["left"] + SCALE * inputs["right"],)

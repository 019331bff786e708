"""The sum as a pure function."""

from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays


def params(weights: Arrays) -> dict[str, Any]:
    return dict(weights)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return dict(params)


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
    return (inputs["some"] + 1,)

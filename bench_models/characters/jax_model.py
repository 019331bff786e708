"""The model as a pure function."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.characters.spec import SMALL
from fairlap.bench_models.gpt2.jax_blocks import every_logit, to_jax_layout, to_spec_layout
from fairlap.models.arrays import Arrays


def params(weights: Arrays) -> dict[str, Any]:
    return to_jax_layout(weights)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return to_spec_layout(params)


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
    return (every_logit(params, SMALL, inputs["input_ids"]),)

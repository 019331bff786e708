"""The steps of an answer as pure functions."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.characters_generate.spec import ANSWER
from fairlap.bench_models.gpt2 import jax_generation
from fairlap.bench_models.gpt2.jax_blocks import to_jax_layout, to_spec_layout
from fairlap.models.arrays import Arrays


def params(weights: Arrays) -> dict[str, Any]:
    return to_jax_layout(weights)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return to_spec_layout(params)


def first(params: dict[str, Any], prompt: Any) -> tuple[Any, Any, list[Any]]:
    return jax_generation.first(ANSWER, params, prompt)


def following(params: dict[str, Any], caches: list[Any], tokens: Any, position: Any) -> tuple[Any, Any, list[Any]]:
    return jax_generation.following(ANSWER, params, caches, tokens, position)

"""Answering with GPT-2 in JAX, through a cache that has room for all positions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from fairlap.bench_models.gpt2.generation import Answer
from fairlap.bench_models.gpt2.jax_blocks import extend

Step = tuple[Any, Any, list[Any]]


def first(answer: Answer, params: dict[str, Any], prompt: Any) -> Step:
    room = ((0, 0), (0, 0), (0, answer.positions - prompt.shape[1]), (0, 0))
    logits, *caches = extend(params, answer.size, prompt, ())
    return logits.argmax(-1), logits, [jnp.pad(each, room) for each in caches]


def following(answer: Answer, params: dict[str, Any], caches: list[Any], tokens: Any, position: Any) -> Step:
    logits, *caches = extend(params, answer.size, tokens, caches, position)
    return logits.argmax(-1), logits, caches

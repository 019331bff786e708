"""The models of this family as pure functions. The cache of an answer has room for all positions."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax.numpy as jnp
from fairlap.bench_models.gpt2.jax_blocks import every_logit, extend, to_jax_layout, to_spec_layout
from fairlap.models.arrays import Arrays

Step = tuple[Any, Any, list[Any]]


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._spec = spec

    def params(self, weights: Arrays) -> dict[str, Any]:
        return to_jax_layout(weights)

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        return to_spec_layout(params)

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any, ...]:
        size, input_ids = self._spec.SIZE, inputs["input_ids"]
        if self._spec.DOES == "every_logit":
            return (every_logit(params, size, input_ids),)
        past = self._spec.PAST_NAMES if self._spec.DOES == "decode" else ()
        return extend(params, size, input_ids, [inputs[name] for name in past])

    def first(self, params: dict[str, Any], prompt: Any) -> Step:
        room = ((0, 0), (0, 0), (0, self._spec.ANSWER.positions - prompt.shape[1]), (0, 0))
        logits, *caches = extend(params, self._spec.SIZE, prompt, ())
        return logits.argmax(-1), logits, [jnp.pad(each, room) for each in caches]

    def following(self, params: dict[str, Any], caches: list[Any], tokens: Any, position: Any) -> Step:
        logits, *caches = extend(params, self._spec.SIZE, tokens, caches, position)
        return logits.argmax(-1), logits, caches

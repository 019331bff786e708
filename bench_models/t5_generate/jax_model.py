"""The steps in JAX. The cache of an answer has room for all of its tokens."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.bench_models.t5_generate.spec import PROMPT, TOKENS, Answering
from fairlap.bench_models.t5_generate.steps import LAST_FIRST, NEVER, OF_PROMPT, Steps
from fairlap.models.arrays import Arrays

Step = tuple[Any, Any, list[Any]]


class Jax:
    of_prompt, last_first = OF_PROMPT, LAST_FIRST

    def rows(self, table: Any, places: Any) -> Any:
        return jnp.asarray(table)[places]

    def linear(self, hidden: Any, weight: Any) -> Any:
        return hidden @ weight.T

    def norm(self, hidden: Any, weight: Any, epsilon: float) -> Any:
        return hidden * jax.lax.rsqrt(jnp.mean(jnp.square(hidden), -1, keepdims=True) + epsilon) * weight

    def relu(self, hidden: Any) -> Any:
        return jax.nn.relu(hidden)

    def by_head(self, hidden: Any, heads: int) -> Any:
        batch, tokens, _ = hidden.shape
        return hidden.reshape(batch, tokens, heads, -1).swapaxes(1, 2)

    def attended(self, query: Any, keys: Any, values: Any, nearness: Any) -> Any:
        scores = query @ keys.swapaxes(2, 3)
        shares = jax.nn.softmax(scores if nearness is None else scores + nearness, axis=-1)
        found = (shares @ values).swapaxes(1, 2)
        return found.reshape(*found.shape[:2], -1)

    def turned(self, nearness: Any) -> Any:
        return nearness.transpose(2, 0, 1)[None]

    def joined(self, held: Any, new: Any) -> Any:
        return jnp.concatenate([held, new], axis=2)

    def written(self, held: Any, new: Any, position: Any) -> Any:
        return jax.lax.dynamic_update_slice_in_dim(held, new, position, axis=2)

    def apart(self, position: Any) -> Any:
        return position - jnp.arange(TOKENS)

    def hidden_where(self, later: Any, nearness: Any) -> Any:
        return jnp.where(later, NEVER, nearness)

    def length(self, held: Any) -> int:
        return int(held.shape[2])

    def last(self, array: Any, count: int) -> Any:
        return array[len(array) - count :]


class Implementation:
    def __init__(self, model: Answering) -> None:
        self._layers, self._own = model.layers, 2 * model.layers.count

    @staticmethod
    def params(weights: Arrays) -> dict[str, Any]:
        return dict(weights)

    @staticmethod
    def canonical(params: dict[str, Any]) -> dict[str, Any]:
        return {name: np.asarray(array) for name, array in params.items()}

    def first(self, params: dict[str, Any], prompt: Any) -> Step:
        steps = Steps(Jax(), self._layers, params)
        of_prompt = steps.of_prompt(prompt)
        logits, *own = steps.step(jnp.zeros_like(prompt[:, :1]), (), of_prompt)
        room = ((0, 0), (0, 0), (0, TOKENS - 1), (0, 0))
        return logits.argmax(-1), logits, [*(jnp.pad(each, room) for each in own), *of_prompt]

    def following(self, params: dict[str, Any], caches: list[Any], tokens: Any, position: Any) -> Step:
        """``position`` counts the prompt too."""
        own, of_prompt = caches[: self._own], caches[self._own :]
        logits, *grown = Steps(Jax(), self._layers, params).step(tokens, own, of_prompt, position - PROMPT + 1)
        return logits.argmax(-1), logits, [*grown, *of_prompt]

"""The steps in PyTorch: through a cache that grows, or through one that has room for all tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from fairlap.bench_models.t5.spec import Layers
from fairlap.bench_models.t5_generate.spec import TOKENS, Answering
from fairlap.bench_models.t5_generate.steps import LAST_FIRST, NEVER, OF_PROMPT, Steps
from fairlap.models.arrays import Arrays
from torch import nn
from torch.nn import functional


class Torch:
    def __init__(self, of_prompt: Any, last_first: Any) -> None:
        self.of_prompt, self.last_first = of_prompt, last_first

    def rows(self, table: Any, places: Any) -> Any:
        return table[places]

    def linear(self, hidden: Any, weight: Any) -> Any:
        return functional.linear(hidden, weight)

    def norm(self, hidden: Any, weight: Any, epsilon: float) -> Any:
        return functional.rms_norm(hidden, weight.shape, weight, epsilon)

    def relu(self, hidden: Any) -> Any:
        return hidden.relu()

    def by_head(self, hidden: Any, heads: int) -> Any:
        return hidden.unflatten(-1, (heads, -1)).transpose(1, 2)

    def attended(self, query: Any, keys: Any, values: Any, nearness: Any) -> Any:
        found = functional.scaled_dot_product_attention(query, keys, values, attn_mask=nearness, scale=1.0)
        return found.transpose(1, 2).flatten(2)

    def turned(self, nearness: Any) -> Any:
        return nearness.permute(2, 0, 1)[None]

    def joined(self, held: Any, new: Any) -> Any:
        return torch.cat([held, new], dim=2)

    def written(self, held: Any, new: Any, position: Any) -> Any:
        return held.index_copy_(2, position, new)

    def apart(self, position: Any) -> Any:
        return position - torch.arange(TOKENS, device=position.device)

    def hidden_where(self, later: Any, nearness: Any) -> Any:
        return nearness.masked_fill(later, NEVER)

    def length(self, held: Any) -> int:
        return int(held.shape[2])

    def last(self, array: Any, count: int) -> Any:
        return array[len(array) - count :]


class Answer(nn.Module):
    positions = TOKENS

    def __init__(self, weights: Arrays, layers: Layers) -> None:
        super().__init__()
        self._layers, self._own = layers, 2 * layers.count
        self._names = list(weights)  # whose points PyTorch's own names cannot have
        self.register_buffer("_of_prompt", torch.tensor(OF_PROMPT), persistent=False)
        self.register_buffer("_last_first", torch.tensor(LAST_FIRST), persistent=False)
        self._held = nn.ParameterList(torch.tensor(array) for array in weights.values())

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {name: held.detach() for name, held in zip(self._names, self._held, strict=True)}

    def first(self, prompt: Any) -> tuple[Any, Any, Sequence[Any]]:
        steps = self._steps()
        of_prompt = steps.of_prompt(prompt)
        logits, *own = steps.step(torch.zeros_like(prompt[:, :1]), (), of_prompt)
        return logits.argmax(-1), logits, [*own, *of_prompt]

    def following(self, caches: Sequence[Any], tokens: Any) -> tuple[Any, Any, Sequence[Any]]:
        logits, *own = self._steps().step(tokens, caches[: self._own], caches[self._own :])
        return logits.argmax(-1), logits, [*own, *caches[self._own :]]

    def first_of_fixed_shape(self, prompt: Any) -> tuple[Any, Any, Sequence[Any]]:
        chosen, logits, caches = self.first(prompt)
        own = [functional.pad(each, (0, 0, 0, TOKENS - 1)) for each in caches[: self._own]]
        return chosen, logits, [*own, *caches[self._own :]]

    def following_of_fixed_shape(self, caches: Sequence[Any], tokens: Any, position: Any) -> tuple[Any, Any]:
        """Written into the caches."""
        logits, *_ = self._steps().step(tokens, caches[: self._own], caches[self._own :], position)
        return logits.argmax(-1), logits

    def _steps(self) -> Steps:
        weights = dict(zip(self._names, self._held, strict=True))
        return Steps(Torch(self._of_prompt, self._last_first), self._layers, weights)


class Implementation:
    def __init__(self, model: Answering) -> None:
        self._layers = model.layers

    def build(self, weights: Arrays) -> Any:
        return Answer(weights, self._layers).eval()

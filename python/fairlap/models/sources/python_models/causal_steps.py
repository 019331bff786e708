"""A causal language model of transformers step by step, through transformers' own caches of keys and values.

PyTorch is imported at the top: only functions of a process that runs it import this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import DynamicCache, StaticCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

_FREQUENCIES = "inv_freq"  # in the names of buffers from which rotary positions are computed


class CausalSteps(torch.nn.Module):
    """What the adapter of PyTorch calls: the prompt, then one token after another, all of them greedily.

    The cache grows with each token, or has room for all ``positions`` and is written in place. Of the latter there is
    one, which every answer empties: compiled code is tied to its memory.
    """

    compiles_prompt = False  # transformers makes a static cache outside of compiled code only
    has_one_static_cache = True

    def __init__(self, model: Any, positions: int) -> None:
        super().__init__()
        taken = inspect.signature(model.forward).parameters
        self.model = model
        self.positions = positions
        self._cache_name = cache_argument(model)
        self._last_alone = {"logits_to_keep": 1} if "logits_to_keep" in taken else {}
        self._static: Any = None

    def first(self, prompt: Any) -> tuple[Any, Any, Any]:
        return self.step(prompt, DynamicCache(config=self.model.config))

    def following(self, cache: Any, tokens: Any) -> tuple[Any, Any, Any]:
        return self.step(tokens, cache)

    def first_of_fixed_shape(self, prompt: Any) -> tuple[Any, Any, Any]:
        if self._static is None:
            self._static = StaticCache(config=self.model.config, max_cache_len=self.positions)
        self._static.reset()
        return self.step(prompt, self._static)

    def following_of_fixed_shape(self, cache: Any, tokens: Any, _position: Any) -> tuple[Any, Any]:
        """Written into the cache, which knows the position."""
        return self.step(tokens, cache)[:2]

    def step(self, tokens: Any, cache: Any) -> tuple[Any, Any, Any]:
        """Read tokens after those of the cache, which then has them too."""
        found = self.model(input_ids=tokens, use_cache=True, **{self._cache_name: cache}, **self._last_alone)
        logits = found.logits[:, -1]
        return logits.argmax(-1), logits, cache

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
        state: dict[str, Any] = self.model.state_dict()
        return state

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Leave frequencies of positions in float32, as ``from_pretrained`` does for a model of fewer bits."""
        kept = [
            (owner, name, each)
            for owner in self.modules()
            for name, each in owner.named_buffers(recurse=False)
            if _FREQUENCIES in name
        ]
        super()._apply(fn, recurse)
        for owner, name, each in kept:
            setattr(owner, name, each.to(getattr(owner, name).device))
        return self


class StepOfArrays(torch.nn.Module):
    """A step as a function of arrays, to export it: the keys and the values of every layer go in and come out."""

    def __init__(self, steps: CausalSteps) -> None:
        super().__init__()
        self.model, self._step = steps.model, steps.step

    def forward(self, input_ids: Any, past: Sequence[Any]) -> tuple[Any, ...]:
        cache = DynamicCache()
        for keys, values in zip(past[::2], past[1::2], strict=True):
            layer = DynamicLayer()
            layer.keys, layer.values, layer.is_initialized = keys, values, True
            layer.device, layer.dtype = keys.device, keys.dtype
            cache.layers.append(layer)
        _, logits, cache = self._step(input_ids, cache)
        return (logits, *(each for layer in cache.layers for each in (layer.keys, layer.values)))


def cache_argument(model: Any) -> str:
    """Find what the model's ``forward`` calls its cache, which depends on the version; empty where it takes none."""
    taken = inspect.signature(model.forward).parameters
    return next((name for name in ("cache", "past_key_values") if name in taken), "")


def shapes_of(cache: Any) -> list[tuple[int, ...]]:
    """Of the keys and the values of every layer in turn; none where it holds something else, such as a state."""
    plain = (DynamicLayer, DynamicSlidingWindowLayer)
    if any(type(layer) not in plain or layer.keys is None for layer in cache.layers):
        return []
    return [tuple(each.shape) for layer in cache.layers for each in (layer.keys, layer.values)]

"""A model of transformers that answers step by step through caches of keys and values: what all kinds of it share.

PyTorch is imported at the top: only functions of a process that runs it import this.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

_FREQUENCIES = "inv_freq"  # in the names of buffers from which rotary positions are computed


class CachedSteps(torch.nn.Module):
    """What the adapter of PyTorch calls: the prompt, then one token after another, all of them greedily.

    The cache grows with each token, or has room for all ``positions`` and is written in place. Of the latter there is
    one, which every answer empties: compiled code is tied to its memory.
    """

    compiles_prompt = False  # transformers makes a static cache outside of compiled code only
    has_one_static_cache = True
    prompt_is_causal: ClassVar[bool]  # each token of it sees those before it only

    def __init__(self, model: Any, positions: int) -> None:
        super().__init__()
        self.model = model
        self.positions = positions
        self._cache_name = cache_argument(model)
        self._static: Any = None

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """Count the tokens that may be handed over after the prompt."""

    @abstractmethod
    def at_once(self, prompt: Any, continuation: Any) -> dict[str, Any]:
        """Name the arguments of the model that give the logits of all steps at once, without a cache."""

    @abstractmethod
    def first(self, prompt: Any) -> tuple[Any, Any, Any]:
        """Read the prompt into a new cache that grows: the chosen tokens, their logits and the state."""

    @abstractmethod
    def first_of_fixed_shape(self, prompt: Any) -> tuple[Any, Any, Any]: ...

    @abstractmethod
    def step(self, tokens: Any, state: Any) -> tuple[Any, Any, Any]:
        """Read tokens after those of the state, which then has them too."""

    @abstractmethod
    def caches(self, state: Any) -> tuple[Any, ...]:
        """Take the caches out of the state, the one that grows first."""

    def following(self, state: Any, tokens: Any) -> tuple[Any, Any, Any]:
        return self.step(tokens, state)

    def following_of_fixed_shape(self, state: Any, tokens: Any, _position: Any) -> tuple[Any, Any]:
        """Written into the cache, which knows the position."""
        return self.step(tokens, state)[:2]

    def cache_arrays(self, state: Any) -> list[Any]:
        """List the keys and the values of every layer, as much as is held."""
        return [each for cache in self.caches(state) for each in arrays_of(cache) if each is not None]

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


def cache_argument(model: Any) -> str:
    """Find what the model's ``forward`` calls its cache, which depends on the version; empty where it takes none."""
    taken = inspect.signature(model.forward).parameters
    return next((name for name in ("cache", "past_key_values") if name in taken), "")


def arrays_of(cache: Any) -> list[Any]:
    """List the keys and the values of every layer in turn."""
    layers = (layer for layer in cache.layers if hasattr(layer, "keys"))
    return [each for layer in layers for each in (layer.keys, layer.values)]


def cache_of(arrays: Sequence[Any]) -> Any:
    """Make a cache that grows of such arrays, without copying them."""
    cache = DynamicCache()
    for keys, values in zip(arrays[::2], arrays[1::2], strict=True):
        layer = DynamicLayer()
        layer.keys, layer.values, layer.is_initialized = keys, values, True
        layer.device, layer.dtype = keys.device, keys.dtype
        cache.layers.append(layer)
    return cache


def shapes_of(cache: Any) -> list[tuple[int, ...]]:
    """Of the keys and the values of every layer in turn; none where it holds something else, such as a state."""
    plain = (DynamicLayer, DynamicSlidingWindowLayer)
    if any(type(layer) not in plain or layer.keys is None for layer in cache.layers):
        return []
    return [tuple(each.shape) for each in arrays_of(cache)]

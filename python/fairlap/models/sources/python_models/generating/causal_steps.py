"""A causal language model of transformers step by step, through transformers' own caches of keys and values.

PyTorch is imported at the top: only functions of a process that runs it import this.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache, StaticCache

from fairlap.models.sources.python_models.generating.cached_steps import (
    CachedSteps,
    arrays_of,
    cache_argument,
    cache_of,
)


class CausalSteps(CachedSteps):
    """The state is the cache, which has the prompt and the answer."""

    prompt_is_causal = True

    def __init__(self, model: Any, positions: int) -> None:
        super().__init__(model, positions)
        taken = inspect.signature(model.forward).parameters
        self._last_alone = {"logits_to_keep": 1} if "logits_to_keep" in taken else {}

    @property
    def vocabulary(self) -> int:
        return int(self.model.get_input_embeddings().weight.shape[0])

    def at_once(self, prompt: Any, continuation: Any) -> dict[str, Any]:
        return {"input_ids": torch.cat([prompt, continuation], dim=1), "use_cache": False}

    def first(self, prompt: Any) -> tuple[Any, Any, Any]:
        return self.step(prompt, DynamicCache(config=self.model.config))

    def first_of_fixed_shape(self, prompt: Any) -> tuple[Any, Any, Any]:
        if self._static is None:
            self._static = StaticCache(config=self.model.config, max_cache_len=self.positions)
        self._static.reset()
        return self.step(prompt, self._static)

    def step(self, tokens: Any, state: Any) -> tuple[Any, Any, Any]:
        found = self.model(input_ids=tokens, use_cache=True, **{self._cache_name: state}, **self._last_alone)
        logits = found.logits[:, -1]
        return logits.argmax(-1), logits, state

    def caches(self, state: Any) -> tuple[Any, ...]:
        return (state,)


class StepOfArrays(torch.nn.Module):
    """A step as a function of arrays, to export it: the keys and the values of every layer go in and come out."""

    def __init__(self, steps: CausalSteps) -> None:
        super().__init__()
        self.model, self._step = steps.model, steps.step

    def forward(self, input_ids: Any, past: Sequence[Any]) -> tuple[Any, ...]:
        _, logits, cache = self._step(input_ids, cache_of(past))
        return (logits[:, None], *arrays_of(cache))  # with an axis for tokens, as runtimes that generate expect it


class StepAtPlaces(torch.nn.Module):
    """The same for tokens whose places in their text are given, with the logits of all of them.

    OpenVINO GenAI puts the tokens of several prompts one after another, so no place follows from a size.
    """

    def __init__(self, steps: CausalSteps) -> None:
        super().__init__()
        self.model, self._cache_name = steps.model, cache_argument(steps.model)

    def forward(self, input_ids: Any, position_ids: Any, past: Sequence[Any]) -> tuple[Any, ...]:
        cache = cache_of(past)
        named = {self._cache_name: cache, "use_cache": True}
        found = self.model(input_ids=input_ids, position_ids=position_ids, **named)
        return (found.logits, *arrays_of(cache))

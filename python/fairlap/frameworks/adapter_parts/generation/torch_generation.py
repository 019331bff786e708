"""Answers of PyTorch: eagerly through a cache that grows, compiled through one that has a single shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.frameworks.contract_parts.generation import Generation, Tokens, bytes_of
from fairlap.models.workload import Workload


def growing(model: Any, device: str) -> Generation:
    import torch

    def step(chosen: Any, logits: Any, caches: Any) -> tuple[list[int], Any, Any]:
        return chosen.tolist(), logits, caches

    def first(prompt: Tokens) -> tuple[list[int], Any, Any]:
        return step(*model.first(torch.tensor(prompt, device=device)))

    def following(caches: Any, tokens: Tokens) -> tuple[list[int], Any, Any]:
        return step(*model.following(caches, torch.tensor(tokens, device=device)))

    return Generation(first, following, _array, lambda caches: _cache_bytes(model, caches))


def of_fixed_shape(work: Workload, model: Any, device: str, compiled: Callable[[Any], Any]) -> Generation:
    import torch

    prefill, decode = model.first_of_fixed_shape, compiled(model.following_of_fixed_shape)
    if getattr(model, "compiles_prompt", True):
        prefill = compiled(prefill)
    places = [torch.tensor([place], device=device) for place in range(model.positions)]
    read = model.positions - work.spec.tokens_of_an_answer + 1

    def first(prompt: Tokens) -> tuple[list[int], Any, Any]:
        chosen, logits, caches = prefill(torch.tensor(prompt, device=device))
        return chosen.tolist(), logits, (caches, read)

    def following(state: Any, tokens: Tokens) -> tuple[list[int], Any, Any]:
        caches, place = state
        chosen, logits = decode(caches, torch.tensor(tokens, device=device), places[place])
        return chosen.tolist(), logits, (caches, place + 1)

    return Generation(first, following, _array, lambda state: _cache_bytes(model, state[0]))


def _cache_bytes(model: Any, caches: Any) -> int:
    """Of arrays in lists, or of the caches of a library."""
    return bytes_of(model.cache_arrays(caches) if hasattr(model, "cache_arrays") else caches)


def _array(logits: Any) -> Any:
    return logits.float().cpu().numpy()

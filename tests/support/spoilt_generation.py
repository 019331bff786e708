"""PyTorch on a user's model that generates, with a mistake for each variant that people make with caches."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.frameworks.libraries.torch import Torch
from fairlap.models.workload import Workload
from installed_package import install_frameworks

if TYPE_CHECKING:
    import pytest

Step = Callable[[Any, Any], Any]


def _cache_one_off(steps: Any) -> Step:
    """Store the values of the prompt one place after their keys."""

    def step(tokens: Any, cache: Any) -> Any:
        empty = cache.get_seq_length() == 0
        found = type(steps).step(steps, tokens, cache)
        for layer in cache.layers if empty else ():
            layer.values = layer.values.roll(1, dims=2)
        return found

    return step


def _called(steps: Any, tokens: Any, cache: Any, **more: Any) -> Any:
    found = steps.model(input_ids=tokens, use_cache=True, **{steps._cache_name: cache}, **more)
    logits = found.logits[:, -1]
    return logits.argmax(-1), logits, cache


def _same_position(steps: Any) -> Step:
    """Place every token of the answer where the first one belongs."""
    import torch

    read: list[int] = [0]

    def step(tokens: Any, cache: Any) -> Any:
        if cache.get_seq_length() == 0:
            read[0] = 0
        places = torch.arange(tokens.shape[1])[None] + read[0]
        read[0] = read[0] or tokens.shape[1]
        return _called(steps, tokens, cache, position_ids=places)

    return step


def _sees_the_future(steps: Any) -> Step:
    """Let each token of the prompt see those after it."""
    import torch

    def step(tokens: Any, cache: Any) -> Any:
        count = tokens.shape[1]
        if cache.get_seq_length():
            return type(steps).step(steps, tokens, cache)
        return _called(steps, tokens, cache, attention_mask=torch.ones(1, 1, count, count, dtype=torch.bool))

    return step


_MISTAKES: dict[str, Callable[[Any], Step]] = {
    "cache-one-off": _cache_one_off,
    "same-position": _same_position,
    "sees-the-future": _sees_the_future,
}
MISTAKES = tuple(_MISTAKES)


def _of_another_prompt(steps: Any) -> None:
    """Make the keys and the values of the cross-attention of the prompt before."""
    encoded = steps.encoded
    steps.encoded = lambda prompt: encoded(prompt.roll(1, dims=0))


def _other_start(steps: Any) -> None:
    steps.start = (steps.start + 1) % steps.model.config.vocab_size


def _token_dropped(steps: Any) -> None:
    """Leave the token that comes after two others out of the cache."""
    left_out = [False]

    def step(tokens: Any, state: Any) -> Any:
        known = state[0].get_seq_length()
        left_out[0] = left_out[0] and known > 0
        if known != FIRST_WITHOUT_TOKEN - 2 or left_out[0]:
            return type(steps).step(steps, tokens, state)
        left_out[0] = True
        chosen, logits, _ = type(steps).step(steps, tokens, copy.deepcopy(state))
        return chosen, logits, state

    steps.step = step


FIRST_WITHOUT_TOKEN = 4  # of an answer
_MISTAKES_OF_DECODERS: dict[str, Callable[[Any], None]] = {
    "of-another-prompt": _of_another_prompt,
    "other-start": _other_start,
    "token-dropped": _token_dropped,
}
MISTAKES_OF_DECODERS = tuple(_MISTAKES_OF_DECODERS)


class Spoilt(Torch):
    name = "spoilt"
    implementation = "torch"
    variants = ("", *MISTAKES, *MISTAKES_OF_DECODERS)  # type: ignore[assignment]  # other ones than those of PyTorch
    options_of: ClassVar = {}

    def _generating(self, work: Workload, wanted: Settings, model: Any, phase: Phase) -> Contestant:
        if wanted.variant in _MISTAKES:
            model.step = _MISTAKES[wanted.variant](model)
        elif wanted.variant:
            _MISTAKES_OF_DECODERS[wanted.variant](model)
        return super()._generating(work, wanted, model, phase)


def install_spoilt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_frameworks(folder, monkeypatch, {"spoilt": "spoilt_generation:Spoilt"})

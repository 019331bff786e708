"""An encoder-decoder of transformers, such as T5, BART or Marian, step by step through transformers' own caches.

The encoder reads the prompt once. The decoder begins with the token that the model's configuration names, and keeps
two kinds of keys and values: those of its own tokens, which grow, and those of the prompt, which the first step makes.

PyTorch is imported at the top: only functions of a process that runs it import this.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import Cache, DynamicCache, EncoderDecoderCache, StaticCache
from transformers.cache_utils import DynamicLayer

from fairlap.models.sources.python_models.generating.cached_steps import CachedSteps, arrays_of, cache_of


class EncoderDecoderSteps(CachedSteps):
    """The state is the cache, and what the encoder made of the prompt, which transformers hands to every step."""

    prompt_is_causal = False

    def __init__(self, model: Any, prompt: int, tokens: int) -> None:
        super().__init__(model, tokens)
        self.start = start_token(model)
        self._prompt = prompt
        self._decoder = _decoder_config(model.config)

    @property
    def vocabulary(self) -> int:
        return int(self.model.get_decoder().get_input_embeddings().weight.shape[0])

    def at_once(self, prompt: Any, continuation: Any) -> dict[str, Any]:
        tokens = torch.cat([self.first_tokens(prompt), continuation], dim=1)
        return {"input_ids": prompt, "decoder_input_ids": tokens, "use_cache": False}

    def first_tokens(self, prompt: Any) -> Any:
        return torch.full_like(prompt[:, :1], self.start)

    def encoded(self, prompt: Any) -> Any:
        return self.model.get_encoder()(input_ids=prompt).last_hidden_state

    def first(self, prompt: Any) -> tuple[Any, Any, Any]:
        cache = EncoderDecoderCache(DynamicCache(config=self._decoder), DynamicCache(config=self._decoder))
        return self.step(self.first_tokens(prompt), (cache, self.encoded(prompt)))

    def first_of_fixed_shape(self, prompt: Any) -> tuple[Any, Any, Any]:
        if self._static is None:
            sizes = (self.positions, self._prompt)
            self._static = EncoderDecoderCache(*(StaticCache(self._decoder, max_cache_len=each) for each in sizes))
        self._static.reset()
        return self.step(self.first_tokens(prompt), (self._static, self.encoded(prompt)))

    def step(self, tokens: Any, state: Any) -> tuple[Any, Any, Any]:
        cache, encoded = state
        called = {self._cache_name: cache, "encoder_outputs": (encoded,), "decoder_input_ids": tokens}
        logits = self.model(use_cache=True, **called).logits[:, -1]
        return logits.argmax(-1), logits, state

    @contextmanager
    def in_plain_operators(self) -> Iterator[None]:
        """Compute attention by products and a softmax: PyTorch exports no fused one that has a bias, as T5's has."""
        before = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")
        try:
            yield
        finally:
            self.model.set_attn_implementation(before)

    def caches(self, state: Any) -> tuple[Any, ...]:
        return state[0].self_attention_cache, state[0].cross_attention_cache


class EncoderOfArrays(torch.nn.Module):
    """The prompt as a function of arrays, to export it: it gives what the decoder begins with, and reads of it."""

    def __init__(self, steps: EncoderDecoderSteps) -> None:
        super().__init__()
        self.model, self._step, self._encoded, self._start = steps.model, steps.step, steps.encoded, steps.start

    def forward(self, input_ids: Any) -> tuple[Any, ...]:
        cache = EncoderDecoderCache(*(Cache(layer_class_to_replicate=_FirstLayer) for _ in range(2)))
        first = input_ids[:, :1].clamp(self._start, self._start)  # no constant, which an output may not be
        self._step(first, (cache, self._encoded(input_ids)))
        return (first, *arrays_of(cache.cross_attention_cache))


class _FirstLayer(DynamicLayer):
    """Holds what it is given first, without joining it to nothing, for which ONNX has no operator."""

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        self.keys, self.values, self.is_initialized = key_states, value_states, True
        return key_states, value_states


class DecoderStepOfArrays(torch.nn.Module):
    """A step as a function of arrays: the decoder's own keys and values go in and come out, the prompt's go in."""

    def __init__(self, steps: EncoderDecoderSteps) -> None:
        super().__init__()
        self.model, self._step = steps.model, steps.step

    def forward(self, input_ids: Any, past: Sequence[Any], cross: Sequence[Any]) -> tuple[Any, ...]:
        cache = EncoderDecoderCache(cache_of(past), cache_of(cross))
        sizes_alone = cross[0][:, 0, :, :1]  # in the place of what the encoder made: its keys and values are known
        _, logits, _ = self._step(input_ids, (cache, sizes_alone))
        return (logits, *arrays_of(cache.self_attention_cache))


def takes_tokens(model: Any) -> bool:
    """Whether its encoder and its decoder read tokens, which a model of speech or of images does not."""
    return model.main_input_name == "input_ids" and "decoder_input_ids" in inspect.signature(model.forward).parameters


def start_token(model: Any) -> int | None:
    """Find what the decoder begins with, as ``generate`` does."""
    own = model.generation_config
    found = own.decoder_start_token_id if own.decoder_start_token_id is not None else own.bos_token_id
    return found if isinstance(found, int) else None


def _decoder_config(config: Any) -> Any:
    """Of the decoder alone, from which a cache finds its layers; transformers takes those of T5's encoder."""
    found = copy.deepcopy(config.get_text_config(decoder=True))
    found.is_encoder_decoder = False  # or each cache would derive it once more
    if layers := getattr(config, "num_decoder_layers", None):
        found.num_hidden_layers = layers
    return found

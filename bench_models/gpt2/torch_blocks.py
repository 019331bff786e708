"""GPT-2 in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from fairlap.bench_models.gpt2.weights import EPSILON, Size
from fairlap.models.arrays import Arrays
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.c_attn = nn.Linear(size.width, 3 * size.width)
        self.c_proj = nn.Linear(size.width, size.width)

    def forward(self, hidden: Any, past: Sequence[Any], position: Any = None) -> tuple[Any, list[Any]]:
        batch, tokens, width = hidden.shape
        parts = self.c_attn(hidden).split(width, dim=2)
        query, *cache = (part.view(batch, tokens, self.size.heads, self.size.head).transpose(1, 2) for part in parts)
        seen = None
        if position is not None:
            cache = [held.index_copy_(2, position, new) for held, new in zip(past, cache, strict=True)]
            seen = torch.arange(cache[0].shape[2], device=position.device)[None] <= position
        elif past:
            cache = [torch.cat(pair, dim=2) for pair in zip(past, cache, strict=True)]
        keys, values = cache
        attended = functional.scaled_dot_product_attention(query, keys, values, attn_mask=seen, is_causal=not past)
        return self.c_proj(attended.transpose(1, 2).reshape(batch, tokens, width)), cache


class Perceptron(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.c_fc = nn.Linear(size.width, 4 * size.width)
        self.c_proj = nn.Linear(4 * size.width, size.width)

    def forward(self, hidden: Any) -> Any:
        return self.c_proj(functional.gelu(self.c_fc(hidden), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(size.width, EPSILON)
        self.attn = Attention(size)
        self.ln_2 = nn.LayerNorm(size.width, EPSILON)
        self.mlp = Perceptron(size)

    def forward(self, hidden: Any, past: Sequence[Any], position: Any = None) -> tuple[Any, list[Any]]:
        attended, cache = self.attn(self.ln_1(hidden), past, position)
        hidden = hidden + attended
        return hidden + self.mlp(self.ln_2(hidden)), cache


class GPT2(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.wte = nn.Embedding(size.vocabulary, size.width)
        self.wpe = nn.Embedding(size.context, size.width)
        self.h = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.ln_f = nn.LayerNorm(size.width, EPSILON)

    def extend(self, input_ids: Any, past: Sequence[Any], position: Any = None) -> tuple[Any, ...]:
        """Read tokens after ``past``, which is nothing, or the keys and the values of every layer in turn.

        With a position, it has room for all tokens, and those of this one are written into it.
        """
        hidden, caches = self._read(input_ids, past, position)
        return (self._logits(hidden[:, -1]), *caches)

    def every_logit(self, input_ids: Any) -> Any:
        """After each token, for training."""
        return self._logits(self._read(input_ids, ())[0])

    def _read(self, input_ids: Any, past: Sequence[Any], position: Any = None) -> tuple[Any, list[Any]]:
        known = past[0].shape[2] if past else 0
        placed = self.wpe.weight[known : known + input_ids.shape[1]] if position is None else self.wpe(position)
        hidden = self.wte(input_ids) + placed
        caches: list[Any] = []
        for layer, block in enumerate(self.h):
            hidden, cache = block(hidden, past[2 * layer : 2 * layer + 2], position)
            caches += cache
        return hidden, caches

    def _logits(self, hidden: Any) -> Any:
        return functional.linear(self.ln_f(hidden), self.wte.weight)


def with_weights(make: type[GPT2], size: Size, weights: Arrays) -> Any:
    with torch.device("meta"):  # weights that are about to be replaced need no memory and no drawing
        model = make(size)
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()}, assign=True)
    return model.eval()

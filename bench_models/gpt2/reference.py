"""The models of this family in NumPy, for the references, in the precision of the inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.elementary import layer_norm, linear, softmax
from fairlap.bench_models.gpt2.weights import CONTINUATION, EPSILON, Size, cache_names
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]
Cache = tuple[Array, Array]


def extend(weights: Arrays, size: Size, input_ids: Array, past: Sequence[Cache]) -> dict[str, Array]:
    """Read tokens after those whose keys and values are ``past``, one pair for each layer."""
    hidden, caches = _read(weights, size, input_ids, past)
    logits = _logits(weights, hidden[:, -1])
    return {"logits": logits, **dict(zip(cache_names(size), caches, strict=True))}


def every_logit(weights: Arrays, size: Size, input_ids: Array, last: int = 0) -> Array:
    """After each token; or after each of so many that are the last."""
    hidden, _ = _read(weights, size, input_ids, nothing_read(size, input_ids))
    return _logits(weights, hidden[:, -last:])


def _read(weights: Arrays, size: Size, input_ids: Array, past: Sequence[Cache]) -> tuple[Array, list[Array]]:
    known = past[0][0].shape[2]
    positions = weights["wpe.weight"][known : known + input_ids.shape[1]]
    hidden = weights["wte.weight"][input_ids] + positions
    caches: list[Array] = []
    for layer, before in enumerate(past):
        name = f"h.{layer}"
        normed = layer_norm(hidden, weights, f"{name}.ln_1", EPSILON)
        attended, cache = _attend(weights, f"{name}.attn", size, normed, before)
        hidden = hidden + attended
        normed = layer_norm(hidden, weights, f"{name}.ln_2", EPSILON)
        hidden = hidden + linear(_gelu(linear(normed, weights, f"{name}.mlp.c_fc")), weights, f"{name}.mlp.c_proj")
        caches += cache
    return hidden, caches


def _logits(weights: Arrays, hidden: Array) -> Array:
    logits: Array = layer_norm(hidden, weights, "ln_f", EPSILON) @ weights["wte.weight"].T
    return logits


def nothing_read(size: Size, input_ids: Array) -> list[Cache]:
    empty = np.zeros((len(input_ids), size.heads, 0, size.head))
    return [(empty, empty)] * size.layers


def _attend(weights: Arrays, name: str, size: Size, hidden: Array, before: Cache) -> tuple[Array, Cache]:
    batch, tokens, width = hidden.shape
    parts = np.split(linear(hidden, weights, f"{name}.c_attn"), 3, axis=-1)
    query, *new = (part.reshape(batch, tokens, size.heads, size.head).transpose(0, 2, 1, 3) for part in parts)
    keys, values = (np.concatenate(pair, axis=2, dtype=hidden.dtype) for pair in zip(before, new, strict=True))
    scores = query @ keys.transpose(0, 1, 3, 2) * size.head**-0.5
    unseen = np.triu(np.full(scores.shape[2:], -np.inf, scores.dtype), 1 + keys.shape[2] - tokens)
    attended = softmax(scores + unseen) @ values
    attended = attended.transpose(0, 2, 1, 3).reshape(batch, tokens, width)
    return linear(attended, weights, f"{name}.c_proj"), (keys, values)


def _gelu(inputs: Array) -> Array:
    """Compute the approximation by tanh, which GPT-2 was trained with."""
    result: Array = (
        0.5 * inputs * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (inputs + 0.044715 * inputs * inputs * inputs)))
    )
    return result


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._spec = spec

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        size, input_ids = self._spec.SIZE, inputs["input_ids"]
        match self._spec.DOES:
            case "every_logit":
                return {"logits": every_logit(weights, size, input_ids)}
            case "prefill":
                return extend(weights, size, input_ids, nothing_read(size, input_ids))
            case "decode":
                caches = [inputs[name] for name in self._spec.PAST_NAMES]
                return extend(weights, size, input_ids, list(zip(caches[::2], caches[1::2], strict=True)))
            case _:
                return self._answer(weights, inputs)

    def _answer(self, weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """All tokens at once, without a cache: each sees only those before it."""
        tokens = np.concatenate([inputs["input_ids"], inputs[CONTINUATION]], axis=1)
        logits = every_logit(weights, self._spec.SIZE, tokens, self._spec.ANSWER.tokens)
        return {"logits": logits, "chosen_logits": logits.max(axis=2)}

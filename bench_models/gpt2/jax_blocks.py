"""GPT-2 in JAX. Matrices of linear layers are (in, out); the embedding, which is also the last one, stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.bench_models.gpt2.weights import EPSILON, Size
from fairlap.models.arrays import Arrays


def to_jax_layout(weights: Arrays) -> dict[str, Any]:
    return {name: np.ascontiguousarray(_turned(name, array)) for name, array in weights.items()}


def to_spec_layout(params: dict[str, Any]) -> dict[str, Any]:
    return {name: _turned(name, np.asarray(array)) for name, array in params.items()}


def _turned(name: str, array: Any) -> Any:
    return array if name.startswith(("wte", "wpe")) else array.T


def extend(
    params: dict[str, Any], size: Size, input_ids: Any, past: Sequence[Any], position: Any = None
) -> tuple[Any, ...]:
    """Read tokens after ``past``, which is nothing, or the keys and the values of every layer in turn.

    With a position, it has room for all tokens, and the result has those of this one in it.
    """
    hidden, caches = _read(params, size, input_ids, past, position)
    return (_logits(params, hidden[:, -1]), *caches)


def every_logit(params: dict[str, Any], size: Size, input_ids: Any) -> Any:
    """After each token, for training."""
    return _logits(params, _read(params, size, input_ids, ())[0])


def _logits(params: dict[str, Any], hidden: Any) -> Any:
    return _norm(params, "ln_f", hidden) @ params["wte.weight"].T


def _norm(params: dict[str, Any], name: str, hidden: Any) -> Any:
    standard = jax.nn.standardize(hidden.astype(jnp.float32), epsilon=EPSILON)
    return (standard * params[f"{name}.weight"] + params[f"{name}.bias"]).astype(hidden.dtype)


def _read(
    params: dict[str, Any], size: Size, input_ids: Any, past: Sequence[Any], position: Any = None
) -> tuple[Any, list[Any]]:
    def linear(name: str, hidden: Any) -> Any:
        return hidden @ params[f"{name}.weight"] + params[f"{name}.bias"]

    known = past[0].shape[2] if past else 0
    places = slice(known, known + input_ids.shape[1]) if position is None else position
    hidden = params["wte.weight"][input_ids] + params["wpe.weight"][places]
    caches: list[Any] = []
    for layer in range(size.layers):
        name = f"h.{layer}"
        parts = linear(f"{name}.attn.c_attn", _norm(params, f"{name}.ln_1", hidden))
        attended, cache = _attend(size, parts, past[2 * layer : 2 * layer + 2], position)
        hidden = hidden + linear(f"{name}.attn.c_proj", attended)
        widened = jax.nn.gelu(linear(f"{name}.mlp.c_fc", _norm(params, f"{name}.ln_2", hidden)), approximate=True)
        hidden = hidden + linear(f"{name}.mlp.c_proj", widened)
        caches += cache
    return hidden, caches


def _attend(size: Size, parts: Any, past: Sequence[Any], position: Any) -> tuple[Any, list[Any]]:
    """Scores and their softmax stay in float32 whatever goes in, as in JAX's own attention."""
    batch, tokens, _ = parts.shape
    query, *cache = (
        part.reshape(batch, tokens, size.heads, size.head).swapaxes(1, 2) for part in jnp.split(parts, 3, axis=2)
    )
    if position is not None:
        pairs = zip(past, cache, strict=True)
        cache = [jax.lax.dynamic_update_slice_in_dim(held, new, position, axis=2) for held, new in pairs]
    elif past:
        cache = [jnp.concatenate(pair, axis=2) for pair in zip(past, cache, strict=True)]
    keys, values = cache
    scores = jnp.matmul(query, keys.swapaxes(2, 3), preferred_element_type=jnp.float32) * size.head**-0.5
    if position is not None:
        scores = jnp.where(jnp.arange(keys.shape[2]) <= position, scores, -jnp.inf)
    elif not past:
        scores = jnp.where(jnp.tri(tokens, dtype=bool), scores, -jnp.inf)
    attended = jnp.matmul(jax.nn.softmax(scores, axis=-1).astype(values.dtype), values)
    return attended.swapaxes(1, 2).reshape(batch, tokens, size.width), cache
